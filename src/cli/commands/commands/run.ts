import type { Command } from "commander";
import type { CommandContext } from "../../runtime/context.js";
import { type ArgumentInfo, type CommandInfo, describeProgram } from "./command-tree.js";

/** `commands`: the tree as JSON, or as an indented list. */
export async function runCommands(root: Command, options: CommandsOptions, { io }: CommandContext): Promise<undefined> {
  const tree = describeProgram(root);
  const asJson = options.json === true || options.output === "json";
  await io.stdout.write(asJson ? `${JSON.stringify(tree, null, io.stdout.isTTY ? 2 : 0)}\n` : listText(tree.commands));
  return undefined;
}

function listText(commands: readonly CommandInfo[]): string {
  const rows = rowsOf(commands, "");
  const width = Math.max(...rows.map(([term]) => term.length));
  return rows.map(([term, summary]) => `${term.padEnd(width)}  ${summary}\n`).join("");
}

function rowsOf(commands: readonly CommandInfo[], indent: string): [string, string][] {
  return commands.flatMap((one): [string, string][] => {
    const word = one.name.slice(one.name.lastIndexOf(" ") + 1);
    const term = [word, ...one.arguments.map(operand)].join(" ");
    return [[indent + term, one.summary], ...rowsOf(one.commands, `${indent}  `)];
  });
}

function operand({ name, required, variadic }: ArgumentInfo): string {
  const word = variadic ? `${name}...` : name;
  return required ? `<${word}>` : `[${word}]`;
}

/** Options of `commands`. */
export interface CommandsOptions {
  output?: "text" | "json";
  json?: boolean;
}
