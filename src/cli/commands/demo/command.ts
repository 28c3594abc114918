import type { Registry } from "../../runtime/registry.js";

/** `demo`. */
export function declareDemo(registry: Registry): void {
  registry.root
    .command("demo")
    .helpGroup("Start:")
    .description("see what this does: the whole story against a service on this machine, in a few seconds")
    .addHelpText("after", "\nNothing leaves this machine, and nothing is kept.\n\nExample:\n  $ agentauth demo")
    .action(
      registry.action(async (_options, context) => {
        const { runDemo } = await import("./run.js");
        return runDemo(context);
      }),
    );
}
