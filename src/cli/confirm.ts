import { createInterface } from "node:readline";
import { abortedError } from "../errors.js";
import type { Io } from "./io.js";

/**
 * Asks a person at the terminal, and asks again until the answer is yes or no. No answer at all is a no.
 *
 * @throws the reason of the signal when it fires
 */
export function confirm(io: Io, question: string, signal: AbortSignal | undefined): Promise<boolean> {
  // Without the question nobody could answer, however quiet the rest is to be.
  const ask = () => io.with({ ...io.settings, quiet: false }).say(`${question} [yes/no]`);
  const input: NodeJS.ReadableStream & { ref?(): unknown; unref?(): unknown } = io.stdin.stream;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortedError(signal));
    input.ref?.();
    const reader = createInterface({ input, terminal: false });
    const end = (settle: () => void) => {
      signal?.removeEventListener("abort", onAbort);
      reader.off("close", onClose);
      settle();
      reader.close();
      // An input that stays open would keep the program from ending.
      input.unref?.();
    };
    const onAbort = () => end(() => reject(signal === undefined ? undefined : abortedError(signal)));
    const onClose = () => end(() => resolve(false));
    signal?.addEventListener("abort", onAbort, { once: true });
    reader.on("close", onClose);
    reader.on("line", (line) => {
      const answer = line.trim().toLowerCase();
      if (answer === "yes" || answer === "y") end(() => resolve(true));
      else if (answer === "no" || answer === "n") end(() => resolve(false));
      else ask();
    });
    ask();
  });
}
