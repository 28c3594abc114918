import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Start:", order: 1, declare: declareDemo };

/** `demo`. */
function declareDemo(registry: Registry): void {
  registry.root
    .command("demo")
    .description("see what this does: the whole story against a service on this machine, in a few seconds")
    .addHelpText("after", "\nNothing leaves this machine, and nothing is kept.\n\nExample:\n  $ agentauth demo")
    .action(
      registry.action(async (_options, context) => {
        const { runDemo } = await import("./run.js");
        return runDemo(context);
      }),
    );
}
