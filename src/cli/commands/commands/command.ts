import { Option } from "commander";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { CommandsOptions } from "./run.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Help:", order: 2, declare: declareCommands };

/** `commands`: the whole command line as data. */
function declareCommands(registry: Registry): void {
  const { root } = registry;
  root
    .command("commands")
    .description("list every command with its flags, for programs and for agents")
    .addOption(new Option("-o, --output <format>", "how to print (default text)").choices(["text", "json"]))
    .addOption(new Option("--json", "the same as -o json"))
    .addHelpText(
      "after",
      `
As JSON: each command with its arguments, flags, choices, defaults, environment variables and examples, and the exit
codes. agentauth schema commands has its JSON Schema.

Examples:
  $ agentauth commands
  $ agentauth commands --json`,
    )
    .action(
      registry.action<CommandsOptions>(async (options, context) => {
        const { runCommands } = await import("./run.js");
        return runCommands(root, options, context);
      }),
    );
}
