import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { abortedError } from "../../errors.js";
import { untilAborted } from "../../http/deadline.js";
import type { InStream } from "./stdin.js";

/**
 * Reads one line from a terminal that does not show it.
 *
 * @param onInterrupt called for Ctrl-C, which is no signal while the line is read
 * @returns the line, or an empty one at the end of the input
 * @throws the reason of the signal when it fires
 */
export async function readHiddenLine(
  { stream }: Pick<InStream, "stream">,
  onInterrupt: () => void,
  signal: AbortSignal,
): Promise<string> {
  if (signal.aborted) throw abortedError(signal);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: stream, output: nowhere, terminal: true, historySize: 0 });
  try {
    const line = new Promise<string>((resolve) => {
      reader.once("line", resolve);
      reader.once("close", () => resolve(""));
      reader.on("SIGINT", onInterrupt);
    });
    return await untilAborted(line, signal);
  } finally {
    reader.close();
    // A terminal that stays open would keep the program from ending.
    stream.pause();
  }
}
