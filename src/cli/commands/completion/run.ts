import { script } from "@bomb.sh/tab";
import type { Command } from "commander";
import type { CommandContext } from "../../runtime/context.js";
import { BASH_SCRIPT } from "./bash.js";
import { complete } from "./complete.js";
import type { CompletionOptions } from "./options.js";
import { knownValues } from "./values.js";
import { ZSH_SCRIPT } from "./zsh.js";

/** `completion`: the script for a shell. */
export async function runCompletion({ shell }: CompletionOptions, { io }: CommandContext): Promise<undefined> {
  // The package's script for bash runs what is typed, and both of its scripts break at the colon of an address.
  const own = { bash: BASH_SCRIPT, zsh: ZSH_SCRIPT, fish: undefined, powershell: undefined }[shell];
  if (own !== undefined) await io.stdout.write(own);
  // The package prints its scripts itself.
  else script(shell, "agentauth", "agentauth");
  return undefined;
}

/** What a script reads where there is nothing to offer, and not even a file. */
const NOTHING = ":1\n";

/**
 * `complete`: a candidate a line, with a tab before what it is, and at the end a colon and 0 (files go too), 4 (nothing
 * else) or 1 (an error). Whoever presses a key wants no message: what goes wrong is silent.
 */
export async function runComplete(
  root: Command,
  words: readonly string[],
  context: CommandContext,
): Promise<undefined> {
  await context.io.stdout.write(await answer(root, words, context));
  return undefined;
}

async function answer(root: Command, words: readonly string[], context: CommandContext): Promise<string> {
  try {
    const { candidates, files } = complete(root, words, await knownValues(words, context));
    const lines = candidates.map(({ value, description }) => `${value}\t${description}\n`);
    return `${lines.join("")}:${files ? 0 : 4}\n`;
  } catch {
    return NOTHING;
  }
}
