import type { ChildProcess, StdioOptions } from "node:child_process";
import { fstatSync } from "node:fs";
import type { Readable } from "node:stream";
import { closeWriteEnd, makePipe, type OutputPipe } from "./pipe.js";

/** Which outputs of a child are masked; the child inherits the others. */
export interface Masked {
  stdout: boolean;
  stderr: boolean;
}

/** The standard streams of a child. */
export interface ChildStdio {
  readonly stdio: StdioOptions;
  /** Closes our copies of the write ends: only then a read ends when the child ends. */
  handOver(): void;
  /** The masked outputs to read; undefined if not masked, or if `out` carries both. */
  sources(child: ChildProcess): { out: Readable | undefined; err: Readable | undefined };
  /** Stops reading. */
  close(): void;
}

/** Creates pipes for the masked outputs. */
export function createChildStdio(masked: Masked): ChildStdio {
  const out = masked.stdout ? makePipe() : undefined;
  // Two pipes would lose the order of outputs that share one file.
  const isShared = out !== undefined && masked.stderr && isSameFile();
  const err = masked.stderr && !isShared ? makePipe() : undefined;
  const pipes = [out, err].filter((pipe) => pipe !== undefined);
  const end = (isMasked: boolean, pipe: OutputPipe | undefined) => (isMasked ? (pipe?.writeEnd ?? "pipe") : "inherit");
  let fallback: (Readable | null)[] = [];
  return {
    stdio: ["inherit", end(masked.stdout, out), end(masked.stderr, isShared ? out : err)],
    handOver: () => pipes.forEach(closeWriteEnd),
    sources(child) {
      fallback = [child.stdout, child.stderr];
      return { out: out?.readEnd ?? child.stdout ?? undefined, err: err?.readEnd ?? child.stderr ?? undefined };
    },
    close() {
      for (const source of [...pipes.map((pipe) => pipe.readEnd), ...fallback]) source?.destroy();
    },
  };
}

function isSameFile(): boolean {
  const [out, err] = [fstatSync(1), fstatSync(2)];
  return out.dev === err.dev && out.ino === err.ino;
}
