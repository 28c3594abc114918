import type { Command } from "commander";
import { AgentAuthError } from "../../../errors.js";
import { suggest } from "../../../http/suggest.js";
import { quote } from "../../../redact.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import { seeHelp } from "../../runtime/usage-error.js";
import { declareHelpTopics } from "./topics.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = {
  group: "Help:",
  order: 1,
  names: ["help"],
  hiddenNames: ["flags", "exit-codes", "environment", "agents", "formats"],
  readsAll: true,
  declare: declareHelp,
};

/** `help [command…]`: commander's own help command knows one level of commands and ignores every other word. */
function declareHelp(registry: Registry): void {
  const { root } = registry;
  root
    .command("help")
    .description("Show help for a command or a topic")
    .argument("[command...]", "Command such as devices list, or a topic")
    .option("--all", "Describe every flag")
    .addHelpText("after", "\nExamples:\n  $ agentauth help devices list\n  $ agentauth help exit-codes")
    .action(
      registry.action<{ words: string[] }>(async ({ words }) => {
        words.reduce<Command>(commandUnder, root).outputHelp();
        return undefined;
      }, "words"),
    );
  declareHelpTopics(registry);
}

function commandUnder(parent: Command, word: string): Command {
  const found = parent.commands.find((command) => command.name() === word);
  if (found) return found;
  const suggestion = suggest(
    word,
    parent.commands.map((command) => command.name()),
  );
  throw new AgentAuthError("usage", `there is no help for ${quote(word, 80)}`, {
    class: "usage",
    hint: suggestion === undefined ? seeHelp() : `did you mean ${suggestion}?`,
  });
}
