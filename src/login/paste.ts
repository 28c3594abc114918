import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { AgentAuthError, abortedError } from "../errors.js";
import { HELP_KEY } from "./brief-messages.js";
import { checkPaste, type PasteRules } from "./paste-check.js";

/** The input that the user pastes into: standard input, or any other stream. */
export type PasteInput = Readable & {
  setRawMode?: (isRaw: boolean) => unknown;
  ref?: () => unknown;
  unref?: () => unknown;
};

/** How a pasted callback is read. */
export interface PasteOptions extends PasteRules {
  input: PasteInput;
  /** Prints why a line was not accepted. */
  say: (text: string) => void;
  /** Called for Ctrl-C where the terminal delivers it as a key. */
  onInterrupt: () => void;
  /** Called for the key `?` before any other, or for a line of it. Without it, `?` is text like any other. */
  onHelp?: (() => void) | undefined;
  signal: AbortSignal;
}

/**
 * Reads lines until one is the callback. For every other line it prints the reason, and continues.
 *
 * @throws AgentAuthError `login_required` when the input ends; the reason of the signal when it fires
 */
export function readPaste(options: PasteOptions): Promise<URLSearchParams> {
  const { input, say, signal, onHelp } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortedError(signal));
    if (input.destroyed || input.readableEnded) return reject(endedError());
    input.ref?.();
    const reader = openReader(input);
    const onKeys = () => {
      // Pasted text may begin with the query of the address; all of it is in the line by now.
      if (reader.line !== HELP_KEY) return;
      reader.write(null, { ctrl: true, name: "u" });
      onHelp?.();
    };
    // After the reader's own listener, so that the keys are in the line already.
    if (onHelp !== undefined && isTerminal(input)) input.on("data", onKeys);
    let isSettled = false;
    const finish = (settle: () => void) => {
      if (isSettled) return;
      isSettled = true;
      signal.removeEventListener("abort", onAbort);
      settle();
      input.off("data", onKeys);
      reader.close();
      // A stream reads ahead, so an input that stays open would keep the program from exiting.
      input.unref?.();
    };
    const onAbort = () => finish(() => reject(abortedError(signal)));
    const onEnd = () => finish(() => reject(endedError()));
    signal.addEventListener("abort", onAbort, { once: true });
    // The reader emits the errors of its input.
    reader.on("error", onEnd);
    reader.on("SIGINT", options.onInterrupt);
    reader.on("close", onEnd);
    reader.on("line", (line) => {
      if (onHelp !== undefined && !isSettled && line.trim() === HELP_KEY) return onHelp();
      // The rest of a chunk is still emitted after the line that settled it.
      const result = isSettled ? undefined : checkPaste(line, options);
      if (result === undefined) return;
      if ("parameters" in result) finish(() => resolve(result.parameters));
      else say(`That was not accepted: ${result.reason}. Still waiting.`);
    });
  });
}

function openReader(input: PasteInput): Interface {
  return createInterface({
    input,
    // Key by key: a terminal in line mode truncates lines, on some systems after 1024 characters. Without
    // an output nothing is echoed, as is right for a code.
    terminal: isTerminal(input),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
}

/** Whether pasted text is not echoed. */
export function isTerminal(input: PasteInput): boolean {
  return input.setRawMode !== undefined;
}

function endedError(): AgentAuthError {
  return inputError("the input ended before the redirect address was pasted");
}

/** The error where the user cannot paste the callback. */
export function inputError(message: string): AgentAuthError {
  const hint = "run the program in a terminal, or use the flow device";
  const remedy = { action: "configure", option: "flow" } as const;
  return new AgentAuthError("login_required", message, { class: "auth", hint, remedy });
}
