import { textOrJson } from "../../flags/global.js";
import { addFlags } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";
import type { CommandsOptions } from "./run.js";

export const command: CommandDeclaration = {
  group: "Help:",
  order: 2,
  names: ["commands"],
  readsAll: true,
  declare: declareCommands,
};

function declareCommands(registry: Registry): void {
  const { root } = registry;
  const commands = root.command("commands").description("List every command with its flags, for programs and agents");
  addFlags(commands, undefined, textOrJson("Output format (default: text)"))
    .argument("[path...]", "Command to describe, such as: devices list (default: all)")
    .addHelpText(
      "after",
      `
The JSON has each command with its arguments, flags, choices, defaults, environment variables and examples, and the exit
codes. Its JSON Schema: agentauth schema commands; of one command: agentauth schema command
An AI agent gets the names and summaries alone, unless it gives --json or names a command.

Examples:
  $ agentauth commands
  $ agentauth commands devices list --json
  $ agentauth commands --json`,
    )
    .action(
      registry.action<CommandsOptions>(async (options, deps) => {
        const { runCommands } = await import("./run.js");
        return runCommands(root, options, deps);
      }, "path"),
    );
}
