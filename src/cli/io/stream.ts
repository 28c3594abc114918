import type { Readable, Writable } from "node:stream";
import { styleText } from "node:util";
import { AgentAuthError, usageError } from "../../errors.js";
import { type Env, withoutByteOrderMark } from "../../platform.js";
import { TERMINAL_COLUMNS, terminalSize } from "./terminal.js";
import { writeAll } from "./write-all.js";

/** The standard streams as the CLI sees them: a terminal is a setting, and a write waits for its reader. */

/** Standard input. */
export interface InStream {
  /** Whether stdin is a terminal. */
  readonly isTTY: boolean;
  /** The stream itself, for prompts and bridges. */
  readonly stream: Readable;
  /**
   * Everything up to the end of input, as UTF-8 without a byte order mark.
   *
   * @throws {@link AgentAuthError} `usage` beyond `maxBytes` (default 1 MiB), or for UTF-16; the signal's reason when it fires
   */
  text(options?: { maxBytes?: number; signal?: AbortSignal }): Promise<string>;
}

/** Wraps a Node stream. */
export function inStream(stream: Readable & { readonly isTTY?: boolean }): InStream {
  return {
    isTTY: stream.isTTY === true,
    stream,
    async text({ maxBytes = 1024 * 1024, signal } = {}) {
      const tooLong = () => usageError(`standard input is longer than ${maxBytes} bytes`);
      const bytes = await readStream(stream, { maxBytes, tooLong, signal });
      return withoutByteOrderMark(bytes.toString("utf8"), "the text on stdin");
    },
  };
}

/**
 * Reads a whole stream.
 *
 * @throws what `tooLong` makes beyond `maxBytes`; the signal's reason when it fires; what the stream fails with
 */
export async function readStream(
  stream: Readable,
  { maxBytes, tooLong, signal }: { maxBytes: number; tooLong(): Error; signal: AbortSignal | undefined },
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  let size = 0;
  const abort = () => stream.destroy(signal?.reason);
  if (signal?.aborted) throw signal.reason;
  signal?.addEventListener("abort", abort, { once: true });
  try {
    for await (const chunk of stream) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : (chunk as Buffer);
      size += bytes.length;
      if (size > maxBytes) throw tooLong();
      chunks.push(bytes);
    }
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
  return Buffer.concat(chunks);
}

const STYLES = ["bold", "dim", "red", "green", "yellow", "cyan"] as const;

/** Formatting functions for one stream; without colour they return the text as it is. */
export type Colors = Readonly<Record<(typeof STYLES)[number], (text: string) => string>> & {
  readonly isColorSupported: boolean;
};

/** Where output goes. */
export interface OutStream {
  readonly isTTY: boolean;
  /** The width of the terminal in columns, 20 to 1000; 80 if unknown. */
  readonly columns: number;
  /** The height of the terminal in lines, 2 to 1000; 24 if unknown. */
  readonly rows: number;
  /** The formatting functions of this stream; `isColorSupported` says whether they do anything. */
  readonly colors: Colors;
  /**
   * Writes text or bytes unchanged, and resolves when the reader has taken them and everything before.
   *
   * @throws {@link PipeClosed} if the reader has closed the pipe; {@link AgentAuthError} when the stream fails otherwise
   */
  write(text: string | Uint8Array): Promise<void>;
}

/** A `Writable` that may be a terminal, such as `process.stdout`. */
export type TerminalStream = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };

/** The file descriptor behind a stream, which a child process can inherit; undefined if there is none. */
export function fileDescriptor(stream: object): number | undefined {
  return "fd" in stream && typeof stream.fd === "number" ? stream.fd : undefined;
}

export interface StreamSettings {
  env: Env;
  /** `false` switches colour off, whatever the environment says. */
  color: boolean;
  /** Runs before each write, to clear a progress line. */
  beforeWrite(): void;
}

/** Wraps a Node stream. */
export function outStream(stream: TerminalStream, settings: StreamSettings): OutStream {
  const isTTY = stream.isTTY === true;
  // A failed write also emits "error", which would end the process; the write's own callback reports it.
  if (stream.listenerCount("error", ignore) === 0) stream.on("error", ignore);
  return {
    isTTY,
    get columns() {
      return terminalSize(settings.env["COLUMNS"], stream.columns, TERMINAL_COLUMNS);
    },
    get rows() {
      return terminalSize(settings.env["LINES"], stream.rows, { usual: 24, least: 2 });
    },
    colors: createColors(settings.color && wantsColor(settings.env, isTTY)),
    async write(text) {
      if (text.length > 0) settings.beforeWrite();
      await writeAll(stream, text);
    },
  };
}

function ignore(): void {}

function createColors(isColorSupported: boolean): Colors {
  const write = (style: (typeof STYLES)[number]) => (text: string) =>
    isColorSupported ? styleText(style, text, { validateStream: false }) : text;
  const styles = STYLES.map((style) => [style, write(style)]);
  return { isColorSupported, ...(Object.fromEntries(styles) as Omit<Colors, "isColorSupported">) };
}

/** `NO_COLOR` wins over `FORCE_COLOR`, which wins over `TERM=dumb`, which wins over the terminal. */
function wantsColor(env: StreamSettings["env"], isTTY: boolean): boolean {
  if (env["NO_COLOR"]) return false;
  const force = env["FORCE_COLOR"];
  if (force) return force !== "0" && force !== "false";
  return isTTY && env["TERM"] !== "dumb";
}
