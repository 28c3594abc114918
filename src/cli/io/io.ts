/** The one object through which the CLI reads and prints. Nothing else touches `process`. */

import { fstatSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { type Env, readEnv } from "../../platform.js";
import { escapeText } from "../../redact.js";
import { fileDescriptor, type InStream, inStream, type OutStream, outStream, type TerminalStream } from "./stream.js";

export type { InStream, OutStream } from "./stream.js";
export { PipeClosed } from "./write-all.js";

/** The printing settings of the global flags. */
export interface IoSettings {
  /** Silences {@link Io.say} and progress. */
  quiet?: boolean;
  /** Enables {@link Io.verbose}. */
  verbose?: boolean;
  /** `false` for `--no-color`. */
  color?: boolean;
}

/** Input, output and environment of one run. Data goes to `stdout`, messages to `stderr`. */
export interface Io {
  readonly stdin: InStream;
  readonly stdout: OutStream;
  readonly stderr: OutStream;
  /** The environment as it was at the start; an empty variable is unset. */
  readonly env: Env;
  readonly settings: Readonly<IoSettings>;
  /** Whether stdout is a file of its own, other than that of the messages: a program that records both gives one for both. */
  isRedirected(): boolean;
  /** The same streams under other settings, once the flags are known. */
  with(settings: IoSettings): Io;
  /** Prints a message for the user; each line is escaped. Silenced by `quiet`. */
  say(text: string): void;
  /** Like {@link say}, printed only with `verbose`. */
  verbose(text: string): void;
  /** Like {@link say}, with the prefix `warning: `; never silenced. */
  warn(text: string): void;
  /** A progress line on stderr; silent if stderr is not a terminal or `quiet` is set. */
  progress(): ProgressText;
}

/** A temporary progress line on the terminal. */
export interface ProgressText {
  update(text: string): void;
  /** Removes the line. A stopped progress shows nothing more. */
  stop(): void;
}

/** The part of `process` that {@link createIo} reads. */
export interface ProcessLike {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: TerminalStream;
  readonly stderr: TerminalStream;
  readonly env: Env;
}

/** The real thing: `createIo(process)`. */
export function createIo(host: ProcessLike, settings: IoSettings = {}): Io {
  const env = readEnv(host.env);
  return assemble(host, env, progressLine(host.stderr), settings);
}

function assemble(host: ProcessLike, env: Io["env"], line: ProgressLine, settings: IoSettings): Io {
  const color = settings.color !== false;
  const stderr = outStream(host.stderr, { env, color, beforeWrite: line.clear });
  const print = (prefix: string, text: string) => {
    const lines = text.split("\n").map(escapeText).join("\n");
    // A closed stderr is not a failure.
    stderr.write(`${prefix}${lines}\n`).then(line.redraw, () => {});
  };
  const showsProgress = stderr.isTTY && settings.quiet !== true && env["TERM"] !== "dumb";
  return {
    // Node opens standard input on the first access, which most commands never need.
    get stdin() {
      return inStream(host.stdin);
    },
    stdout: outStream(host.stdout, { env, color, beforeWrite: host.stdout.isTTY === true ? line.clear : () => {} }),
    stderr,
    env,
    settings,
    isRedirected: () => isOwnFile(fileDescriptor(host.stdout), fileDescriptor(host.stderr)),
    with: (changed) => assemble(host, env, line, { ...settings, ...changed }),
    say: (text) => settings.quiet !== true && print("", text),
    verbose: (text) => settings.verbose === true && print("", text),
    warn: (text) => print(stderr.colors.yellow("warning: "), text),
    progress: () => (showsProgress ? line.start(() => stderr.columns) : { update() {}, stop() {} }),
  };
}

function isOwnFile(fd: number | undefined, messages: number | undefined): boolean {
  if (fd === undefined) return false;
  const file = fstatSync(fd);
  const other = messages === undefined ? undefined : fstatSync(messages);
  return file.isFile() && (file.ino !== other?.ino || file.dev !== other.dev);
}

const ERASE_LINE = "\r\u001b[2K";

/** The line itself: one per terminal. */
interface ProgressLine {
  /** Removes the line before something else is printed. */
  clear(): void;
  /** Shows it again afterwards. */
  redraw(): void;
  /** Starts a progress, cut to the width that `columns` reports. */
  start(columns: () => number): ProgressText;
}

function progressLine(stream: Writable): ProgressLine {
  let shown = "";
  let drawn = false;
  const clear = () => {
    if (drawn) stream.write(ERASE_LINE);
    drawn = false;
  };
  const redraw = () => {
    if (shown === "") return;
    stream.write(`${ERASE_LINE}${shown}`);
    drawn = true;
  };
  const start = (columns: () => number): ProgressText => {
    let stopped = false;
    return {
      update(text) {
        if (stopped) return;
        // One column stays free: a full last column makes some terminals wrap.
        shown = cut(escapeText(text), columns() - 1);
        redraw();
      },
      stop() {
        if (stopped) return;
        stopped = true;
        shown = "";
        clear();
      },
    };
  };
  return { clear, redraw, start };
}

/**
 * Cuts the text so that it certainly fits: a non-ASCII character counts as two columns. An exact measure needs a library
 * that takes half the start-up time of the program, for a temporary line.
 */
function cut(text: string, width: number): string {
  const characters = [...text];
  const widths = characters.map((character) => (character >= " " && character <= "~" ? 1 : 2));
  if (widths.reduce((sum, one) => sum + one, 0) <= width) return text;
  let used = 0;
  const kept = characters.filter((_, index) => {
    used += widths[index] ?? 2;
    return used <= width - 1;
  });
  return width < 1 ? "" : `${kept.join("")}…`;
}
