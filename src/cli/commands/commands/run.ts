import type { Command } from "commander";
import { usageError } from "../../../errors.js";
import { suggestionHint } from "../../../http/suggest.js";
import { quote } from "../../../redact.js";
import type { CommandContext } from "../../runtime/context.js";
import { type ArgumentInfo, type CommandInfo, describeProgram, leafCommands } from "./command-tree.js";

/** A command in the list that an AI agent gets: an item of `commands` without `--json`. */
export interface CommandSummary {
  /** As it is typed after `agentauth`, such as `devices list`. */
  name: string;
  /** What it does, in one line. */
  summary: string;
}

/** `commands`: the tree, or one command of it, as JSON or as an indented list. */
export async function runCommands(root: Command, options: CommandsOptions, { io }: CommandContext): Promise<undefined> {
  const tree = describeProgram(root);
  const { path = [], brief } = options;
  const isJson = options.json === true || options.output === "json";
  const json = (value: object) => `${JSON.stringify(value, null, io.stdout.isTTY ? 2 : 0)}\n`;
  if (brief) {
    const summaries: CommandSummary[] = leafCommands(tree.commands).map(({ name, summary }) => ({ name, summary }));
    await io.stdout.write(json(summaries));
    io.say("agentauth commands <command> has its flags and examples; agentauth commands --json has those of all");
  } else if (path.length > 0) {
    const found = findCommand(tree.commands, path);
    await io.stdout.write(isJson ? json(found) : listText([found]));
  } else {
    await io.stdout.write(isJson ? json(tree) : listText(tree.commands));
  }
}

const LISTED = "agentauth commands lists them";

function findCommand(commands: readonly CommandInfo[], path: readonly string[]): CommandInfo {
  const words = path.flatMap((word) => word.split(" ")).filter((word) => word !== "");
  let [among, found]: [readonly CommandInfo[], CommandInfo | undefined] = [commands, undefined];
  for (const [index, word] of words.entries()) {
    const lastWord = ({ name }: CommandInfo) => name.slice(name.lastIndexOf(" ") + 1);
    found = among.find((one) => lastWord(one) === word);
    if (found === undefined) {
      const hint = suggestionHint(word, among.map(lastWord), LISTED);
      throw usageError(`there is no command ${quote(words.slice(0, index + 1).join(" "))}`, hint);
    }
    among = found.commands;
  }
  if (found === undefined) throw usageError('there is no command ""', LISTED);
  return found;
}

function listText(commands: readonly CommandInfo[]): string {
  const rows = rowsOf(commands, "");
  const width = Math.max(...rows.map(([term]) => term.length));
  return rows.map(([term, summary]) => `${term.padEnd(width)}  ${summary}\n`).join("");
}

function rowsOf(commands: readonly CommandInfo[], indent: string): [string, string][] {
  return commands.flatMap((one): [string, string][] => {
    const word = one.name.slice(one.name.lastIndexOf(" ") + 1);
    const term = [word, ...one.arguments.map(formatOperand)].join(" ");
    return [[indent + term, one.summary], ...rowsOf(one.commands, `${indent}  `)];
  });
}

function formatOperand({ name, required, variadic }: ArgumentInfo): string {
  const word = variadic ? `${name}...` : name;
  return required ? `<${word}>` : `[${word}]`;
}

export interface CommandsOptions {
  /** The words of one command. */
  path?: readonly string[];
  /** Whether an AI agent gets names and summaries alone. */
  brief?: true;
  output?: "text" | "json";
  json?: boolean;
}
