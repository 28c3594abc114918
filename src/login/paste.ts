import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { AgentAuthError, abortedError } from "../errors.js";
import { judgePaste, type PasteRules } from "./paste-check.js";

/** Lines that a person types: standard input, or any other stream. */
export type PasteInput = Readable & {
  setRawMode?: (isRaw: boolean) => unknown;
  ref?: () => unknown;
  unref?: () => unknown;
};

/** How a pasted callback is read. */
export interface PasteOptions extends PasteRules {
  input: PasteInput;
  /** Says why a line was not taken. */
  say: (text: string) => void;
  /** Called for Ctrl-C where the terminal hands it to us as a key. */
  onInterrupt: () => void;
  signal: AbortSignal;
}

/**
 * Reads lines until one is the callback. Every other is answered with the reason, and reading goes on.
 *
 * @throws AgentAuthError `login_required` when the input ends; the reason of the signal when it fires
 */
export function readPaste(options: PasteOptions): Promise<URLSearchParams> {
  const { input, say, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortedError(signal));
    if (input.destroyed || input.readableEnded) return reject(endedError());
    input.ref?.();
    const reader = openReader(input);
    let isOver = false;
    const end = (settle: () => void) => {
      if (isOver) return;
      isOver = true;
      signal.removeEventListener("abort", onAbort);
      settle();
      reader.close();
      // A stream reads ahead of whoever reads it, so that an input which stays open would keep the program from ending.
      input.unref?.();
    };
    const onAbort = () => end(() => reject(abortedError(signal)));
    const onEnd = () => end(() => reject(endedError()));
    signal.addEventListener("abort", onAbort, { once: true });
    // The reader passes on what breaks its input.
    reader.on("error", onEnd);
    reader.on("SIGINT", options.onInterrupt);
    reader.on("close", onEnd);
    reader.on("line", (line) => {
      // Lines of a chunk that is being read still come after the last that counts.
      const verdict = isOver ? undefined : judgePaste(line, options);
      if (verdict === undefined) return;
      if ("parameters" in verdict) end(() => resolve(verdict.parameters));
      else say(`That was not accepted: ${verdict.reason}. Still waiting.`);
    });
  });
}

function openReader(input: PasteInput): Interface {
  return createInterface({
    input,
    // Key by key: a terminal that collects lines itself cuts them off, on some systems after 1024 characters. Without
    // an output nothing is echoed, which suits a code.
    terminal: isTerminal(input),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
}

/** Whether what is pasted stays invisible. */
export function isTerminal(input: PasteInput): boolean {
  return input.setRawMode !== undefined;
}

function endedError(): AgentAuthError {
  return new AgentAuthError("login_required", "the input ended before the redirect address was pasted", {
    class: "auth",
    hint: "run the command in a terminal, or sign in with --flow device",
  });
}
