import { script } from "@bomb.sh/tab";
import type { Command } from "commander";
import type { CommandContext } from "../../runtime/context.js";
import { complete } from "./complete.js";
import { BASH_SCRIPT, POWERSHELL_SCRIPT, ZSH_SCRIPT } from "./scripts.js";
import { knownValues } from "./values.js";

/** Options of `completion`. */
export interface CompletionOptions {
  shell: "bash" | "zsh" | "fish" | "powershell";
}

/** `completion`: the script for a shell. */
export async function runCompletion({ shell }: CompletionOptions, { io }: CommandContext): Promise<undefined> {
  // The package's scripts for bash and PowerShell evaluate the typed words, and those for bash and zsh break at the
  // colon of a URL.
  const own = { bash: BASH_SCRIPT, zsh: ZSH_SCRIPT, fish: undefined, powershell: POWERSHELL_SCRIPT }[shell];
  await io.stdout.write(own ?? packagedScript(shell));
  return undefined;
}

/** The script that the package prints, synchronously: the output of a run is that of its IO, not of the process. */
function packagedScript(shell: CompletionOptions["shell"]): string {
  const lines: string[] = [];
  const { log } = console;
  console.log = (line: string) => void lines.push(line);
  try {
    script(shell, "agentauth", "agentauth");
  } finally {
    console.log = log;
  }
  return lines.map((line) => `${line}\n`).join("");
}

/**
 * `complete`: one candidate per line, a tab, and its description; the last line is a colon and 0 (complete files too), 4
 * (nothing else) or 1 (an error). Errors are silent: a message would corrupt the line that the user is typing.
 */
export async function runComplete(
  root: Command,
  words: readonly string[],
  context: CommandContext,
): Promise<undefined> {
  await context.io.stdout.write(await answer(root, words, context).catch(() => ":1\n"));
  return undefined;
}

async function answer(root: Command, words: readonly string[], context: CommandContext): Promise<string> {
  const { candidates, files } = complete(root, words, await knownValues(words, context));
  const lines = candidates.map(({ value, description }) => `${value}\t${description}\n`);
  return `${lines.join("")}:${files ? 0 : 4}\n`;
}
