import { createInterface } from "node:readline";
import { abortedError } from "../../errors.js";
import { untilAborted } from "../../http/deadline.js";
import type { PasteInput } from "../../login/paste.js";
import { escapeText } from "../../redact.js";
import type { Io } from "../io/io.js";

/**
 * Asks a yes/no question on stderr, also with `--quiet`, and reads one line of stdin. The caller decides whether there is
 * a terminal to ask on.
 *
 * @returns true for "y" or "yes"; false for any other line and for the end of the input
 * @throws the reason of the signal when it fires
 */
export async function confirm(
  io: Io,
  question: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<boolean> {
  if (signal.aborted) throw abortedError(signal);
  await io.stderr.write(`${question.split("\n").map(escapeText).join("\n")} [y/N] `);
  const input: PasteInput = io.stdin.stream;
  input.ref?.();
  const reader = createInterface({ input, terminal: false });
  try {
    const line = new Promise<string>((resolve) => {
      reader.once("line", resolve);
      reader.once("error", () => resolve(""));
      reader.once("close", () => resolve(""));
    });
    return /^\s*y(?:es)?\s*$/i.test(await untilAborted(line, signal));
  } finally {
    reader.close();
    // A stream reads ahead, so that an input which stays open would keep the program from ending.
    input.unref?.();
  }
}
