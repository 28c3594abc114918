import { Readable, Writable } from "node:stream";
import { createIo, type Io, type IoSettings } from "../../src/cli/io/io.js";
import type { TerminalStream } from "../../src/cli/io/stream.js";
import type { Env } from "../../src/platform.js";

/** An `Io` that records its output. */
export interface MemoryIo extends Io {
  /** Everything written to stdout so far. */
  out(): string;
  /** Everything written to stderr so far. */
  err(): string;
}

/** Options of {@link createMemoryIo}. */
export interface MemoryIoOptions extends IoSettings {
  /** Which streams are terminals. Default: none. */
  tty?: boolean | { stdin?: boolean; stdout?: boolean; stderr?: boolean };
  /** The width that the terminals report. */
  columns?: number;
  env?: Env;
  /** The content of stdin. */
  stdin?: string;
}

/** An `Io` in memory. */
export function createMemoryIo(options: MemoryIoOptions = {}): MemoryIo {
  const { tty = false, columns, env = {}, stdin = "", ...settings } = options;
  const isTTY = (name: "stdin" | "stdout" | "stderr") => (typeof tty === "boolean" ? tty : tty[name] === true);
  const stdout = sink();
  const stderr = sink();
  const io = createIo(
    {
      stdin: Object.assign(Readable.from(stdin === "" ? [] : [Buffer.from(stdin)]), { isTTY: isTTY("stdin") }),
      stdout: Object.assign(stdout.stream, { isTTY: isTTY("stdout"), columns }) as TerminalStream,
      stderr: Object.assign(stderr.stream, { isTTY: isTTY("stderr"), columns }) as TerminalStream,
      env,
    },
    settings,
  );
  return { ...io, stdout: io.stdout, stderr: io.stderr, out: stdout.text, err: stderr.text };
}

function sink(): { stream: Writable; text(): string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString("utf8") };
}
