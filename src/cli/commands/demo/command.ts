import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Start:", order: 1, names: ["demo"], declare: declareDemo };

function declareDemo(registry: Registry): void {
  registry.root
    .command("demo")
    .description("Take a guided tour (no account needed)")
    .addHelpText(
      "after",
      "\nThe demo sends nothing to other machines and leaves nothing behind.\n\nExample:\n  $ agentauth demo",
    )
    .action(registry.run(() => import("./run.js"), "runDemo"));
}
