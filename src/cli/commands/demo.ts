import type { Registry } from "../program.js";

/** `demo`. */
export function declareDemo(registry: Registry): void {
  registry.root
    .command("demo")
    .helpGroup("Try it:")
    .description("see what this does: the whole story against a service on this machine, in a few seconds")
    .action(
      registry.action(async (_options, deps) => {
        const { runDemo } = await import("../run-demo.js");
        return runDemo(deps);
      }),
    );
}
