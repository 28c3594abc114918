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

/** The ids of the devices in a table or in records, in order. */
export function deviceIds(lines: readonly string[]): string[] {
  return lines.flatMap((line) => line.match(/\bdev_\w+/) ?? []);
}
