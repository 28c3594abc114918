import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, linesOf, until } from "../helpers/cli.js";
import { ON_LINUX } from "../helpers/systems.js";

const ESC = "\u001b";

/** Whether there is a way to a terminal: the program `script` of util-linux. */
export const hasTerminal = ON_LINUX && spawnSync("script", ["--version"]).status === 0;
if (!hasTerminal) process.stderr.write("SKIPPED: the tests on a terminal need the program script of util-linux\n");

/** A program on a terminal of its own. */
export interface TerminalRun {
  /** Everything that came to the terminal so far. */
  out(): string;
  /** The lines of it that are not empty, as they stand when progress has come and gone. */
  lines(): string[];
  /** Types. */
  type(keys: string): void;
  /** Waits until the terminal has shown a text. */
  shows(text: string | RegExp): Promise<void>;
  /** Sends a signal to the program, not to its terminal. */
  signal(name: NodeJS.Signals): void;
  /** Its exit code; 128 and more for a signal. */
  ended: Promise<number | null>;
}

/**
 * Starts the program with a terminal of 100 columns and 24 lines as its stdin, stdout and stderr.
 *
 * @param inShell makes a script of the command that starts the program; default: the command alone
 */
export function startOnTerminal(
  args: readonly string[],
  env: Record<string, string | undefined> = {},
  inShell?: (command: string) => string,
): TerminalRun {
  const start = `echo pid $$ && exec ${[process.execPath, BIN, ...args].map(shellWord).join(" ")}`;
  const command = inShell === undefined ? start : inShell(`sh -c ${shellWord(start)}`);
  const all = cleanEnv({ TERM: "xterm-256color", COLUMNS: "100", LINES: "24", NO_COLOR: "1", ...env });
  const child: ChildProcess = spawn("script", ["-qec", command, "/dev/null"], { env: all, stdio: "pipe" });
  const read = collect(child.stdout);
  const out = () => read().replace(/^pid \d+\r\n/, "");
  const found = (text: string | RegExp) => (typeof text === "string" ? out().includes(text) : text.test(out()));
  return {
    out,
    lines: () => linesOf(out().replaceAll("\r\n", "\n")).flatMap((line) => line.split(`\r${ESC}[2K`).at(-1) || []),
    type: (keys) => void child.stdin?.write(keys),
    shows: (text) => until(() => found(text) || child.exitCode !== null),
    signal: (name) => process.kill(Number(/^pid (\d+)/.exec(read())?.[1]), name),
    ended: once(child, "close").then(([code]) => code as number | null),
  };
}

const PARTS = new RegExp(`${ESC}\\[[?\\d;]*[A-Za-z]|\\r|\\n|${ESC}|[^${ESC}\\r\\n]+`, "g");
const SEQUENCE = new RegExp(`^${ESC}\\[([?\\d;]*)([A-Za-z])$`);

/**
 * The lines that a terminal ends up with: it knows what the program sends to draw, and nothing else.
 *
 * @throws where an escape sequence comes that it does not know, or that writes above what the program has drawn
 */
export function screenOf(raw: string): string[] {
  const lines: string[] = [""];
  let row = 0;
  let column = 0;
  for (const [part] of raw.matchAll(PARTS)) {
    const [, count = "", what = ""] = SEQUENCE.exec(part) ?? [];
    if (part === "\n") {
      row++;
      lines[row] ??= "";
    } else if (part === "\r") column = 0;
    else if (what === "A") {
      row -= Number(count || 1);
      if (row < 0) throw new Error("it goes above its own lines");
    } else if (what === "K") lines[row] = count === "2" ? "" : (lines[row] ?? "").slice(0, column);
    else if (what === "J") {
      lines.length = row + 1;
      lines[row] = (lines[row] ?? "").slice(0, column);
    } else if (what === "m" || /^\?(?:7|25|2026)$/.test(count)) continue;
    else if (part.startsWith(ESC)) throw new Error(`unknown: ${JSON.stringify(part)}`);
    else {
      const line = (lines[row] ?? "").padEnd(column);
      lines[row] = line.slice(0, column) + part + line.slice(column + part.length);
      column += part.length;
    }
  }
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** The ids of the devices in a table or in records, in order. */
export function deviceIds(lines: readonly string[]): string[] {
  return lines.flatMap((line) => line.match(/\bdev_\w+/) ?? []);
}
