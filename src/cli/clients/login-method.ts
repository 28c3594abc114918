import type { Readable } from "node:stream";
import { encode } from "uqr";
import { abortedError } from "../../errors.js";
import { untilAborted } from "../../http/deadline.js";
import type { LoginDisplay } from "../../login/messages.js";
import type { PasteInput } from "../../login/paste.js";
import { terminalLogin } from "../../login/terminal.js";
import type { TraceEntry } from "../../oauth/http/http.js";
import type { LoginMethod } from "../../oauth/login/login-method.js";
import { loginMethodOptions } from "../../profile/login-settings.js";
import { escapeText } from "../../redact.js";
import { flagText } from "../flags/flag-name.js";
import type { Io } from "../io/io.js";
import { hasHyperlinks, isAscii } from "../io/terminal.js";
import { agentMode } from "../runtime/agent-mode.js";
import { type ContextFlags, canPrompt, type RunContext } from "../runtime/context.js";
import { fill } from "../runtime/help.js";

export function traceLine({ step, method, url, status, used, why }: TraceEntry): string {
  return `${used ? "+" : "-"} ${step}: ${method} ${url}${status === undefined ? "" : ` ${status}`}: ${why}`;
}

/**
 * How the user logs in, by the flags. Where no prompt is allowed, the URL is printed all the same and the callback
 * waited for: the reader may open it elsewhere.
 *
 * @param input where a callback is pasted into; default: stdin, where the user may be prompted
 */
export function loginMethod(
  flags: Omit<ContextFlags, "output">,
  { io, signals }: Pick<RunContext, "io" | "signals">,
  input?: Readable,
): LoginMethod {
  const allowsPrompt = canPrompt(flags, io);
  const pasted = allowsPrompt && (io.stdin.isTTY || flags.flow === "paste") ? io.stdin.stream : undefined;
  return terminalLogin({
    ...loginMethodOptions(flags),
    // Without the URL there is no login, also with --quiet.
    say: (text) => io.with({ quiet: false }).say(fitToTerminal(text, io)),
    env: io.env,
    flow: flags.flow === "paste" ? "paste" : "browser",
    browser: allowsPrompt ? flags.browser : "none",
    display: canConfirm(flags, io) ? loginDisplay(io) : undefined,
    optionText: flagText,
    confirm: canConfirm(flags, io) ? (question, signal) => confirm(io, fitToTerminal(question, io), signal) : undefined,
    onInterrupt: () => signals.raise("SIGINT"),
    input: input ?? pasted,
  });
}

/** Breaks lines between words for a terminal. An indented line is an address or a command to copy: it stays a line. */
function fitToTerminal(text: string, { stderr }: Pick<Io, "stderr">): string {
  if (!stderr.isTTY) return text;
  const lines = text.split("\n");
  return lines.flatMap((line) => (line.startsWith(" ") ? line : fill(line, stderr.columns))).join("\n");
}

/** Whether a user reads stderr and can respond; an agent can run us in a terminal that no user reads. */
export function canConfirm(flags: Pick<ContextFlags, "input">, io: Io): boolean {
  return canPrompt(flags, io) && io.stdin.isTTY && io.stderr.isTTY && agentMode(io.env, io.stdout) === undefined;
}

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
  const reader = process.getBuiltinModule("node:readline").createInterface({ input, terminal: false });
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

export function loginDisplay(io: Pick<Io, "stderr" | "env">): LoginDisplay {
  const { stderr, env } = io;
  // A closed stderr is not a failure.
  const print = (text: string) => void stderr.write(text).catch(() => {});
  return {
    link(url) {
      const text = hasHyperlinks(env) ? `\u001b]8;;${url}\u001b\\${url}\u001b]8;;\u001b\\` : url;
      print(`  ${text}\n`);
    },
    async qrCode(text) {
      // Without colours of its own, the code would be inverted on every other terminal.
      if (isAscii(env) || !stderr.colors.isColorSupported) return false;
      const { columns, lines } = qrLines(text);
      if (lines.length >= stderr.rows || columns > stderr.columns) return false;
      print(`${lines.join("\n")}\n\n`);
      return true;
    },
  };
}

/** Black on white, whatever the theme: numbers of the fixed part of the palette. */
const COLORS = "\u001b[38;5;16;48;5;231m";
const RESET = "\u001b[0m";
/** By the dark of the upper and of the lower module. */
const BLOCKS = [
  [" ", "▄"],
  ["▀", "█"],
] as const;
/** Modules of white around the code; scanners read screens with half of the four of the standard. */
const QUIET_ZONE = 2;

/** A QR code in lines of two rows of modules each. */
export function qrLines(text: string): { columns: number; lines: string[] } {
  const { data, size } = encode(text, { ecc: "L", border: QUIET_ZONE });
  const lines = Array.from({ length: Math.ceil(size / 2) }, (_, nth) => {
    const isDark = (row: number, column: number) => (data[row]?.[column] === true ? 1 : 0);
    const blocks = Array.from({ length: size }, (_, column) => {
      return BLOCKS[isDark(2 * nth, column)][isDark(2 * nth + 1, column)];
    });
    return `${COLORS}${blocks.join("")}${RESET}`;
  });
  return { columns: size, lines };
}
