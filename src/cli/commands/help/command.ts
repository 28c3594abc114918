import type { Command } from "commander";
import { usageError } from "../../../errors.js";
import { suggestionHint } from "../../../http/suggest.js";
import { quote } from "../../../redact.js";
import { WIDEST_HELP } from "../../io/terminal.js";
import { OUTPUT_FORMATS } from "../../output/formats.js";
import { ENVIRONMENT } from "../../runtime/agent-mode.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";
import { EXIT_CODE_MEANINGS, EXIT_CODES, type Outcome } from "../../runtime/exit-codes.js";
import { globalFlagRows, wrapProse } from "../../runtime/help.js";
import { seeHelp } from "../../runtime/usage-error.js";

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
  const names = parent.commands.map((command) => command.name());
  throw usageError(`there is no help for ${quote(word, 80)}`, suggestionHint(word, names, seeHelp()));
}

const AGENTS = `If an AI agent runs agentauth:
  - lists, status and the like are printed as JSON, as with -o json; token still prints the bare token
  - errors are one line of JSON, the last line on stderr
  - there is no prompt and no browser, as with --no-input --browser none
  - lists print the short form, as with --brief: 50 items in few columns, and on stderr the command for the next ones; --limit prints whole items
  - commands prints names and summaries; with --json, or for one command, everything

A line on stderr reports this mode, once per session of the agent. What is named means the same for everyone: with -o, --json, --jq, --columns, the output setting of a profile or a redirect to a file, a list is whole and in that form.
Agents are detected by their environment variables; CI alone is not an agent.
AGENTAUTH_AGENT=0 turns the mode off, AGENTAUTH_AGENT=1 on.

The user logs in with two commands, and the agent is free between them:
  agentauth login <mcp_url> --no-wait --json       prints the login URL (with --flow device: the code) and exits
  agentauth login <mcp_url> --wait <login_id>      waits until the user has logged in
A process holds the callback in between. A plain login does the same as the first command, unless --browser or --flow is
given. A callback that the user copies: agentauth login <mcp_url> --wait <login_id> --callback-url - (on stdin).

Every command with its flags as data: agentauth commands --json; the output types: agentauth schema`;

function formatTable(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, description]) => `  ${name.padEnd(width)}  ${description}`).join("\n");
}

const TOPICS: readonly { name: string; description: string; text: (root: Command) => string }[] = [
  {
    name: "flags",
    description: "Flags of every command",
    text: (root) => `Flags of every command:\n${formatTable(globalFlagRows(root))}`,
  },
  {
    name: "exit-codes",
    description: "Meaning of each exit code",
    text: () =>
      `Exit codes:\n${formatTable(Object.entries(EXIT_CODES).map(([name, code]) => [String(code), EXIT_CODE_MEANINGS[name as Outcome]] as const))}`,
  },
  {
    name: "environment",
    description: "Environment variables",
    text: () =>
      `Environment variables:\n${formatTable(ENVIRONMENT)}\n\nA flag takes precedence over the environment, the environment over the profile.\nAn empty variable counts as unset.`,
  },
  { name: "agents", description: "Behaviour if an AI agent runs agentauth", text: () => AGENTS },
  {
    name: "formats",
    description: "Output formats",
    text: () =>
      `Output formats (-o):\n${formatTable(Object.entries(OUTPUT_FORMATS).map(([name, { description }]) => [name, description]))}`,
  },
];

/** The topics of `help`: hidden commands. */
function declareHelpTopics({ root, context, action }: Registry): void {
  for (const topic of TOPICS) {
    const command = root.command(topic.name, { hidden: true }).description(topic.description);
    const text = () => `${wrapProse(topic.text(root), Math.min(context.io.stdout.columns, WIDEST_HELP)).join("\n")}\n`;
    command.helpInformation = text;
    command.action(action(async () => void (await context.io.stdout.write(text()))));
  }
  const names = TOPICS.map(({ name, description }) => `  ${`help ${name}`.padEnd(18)}  ${description}`);
  root.addHelpText("after", `\nTopics:\n${names.join("\n")}`);
}
