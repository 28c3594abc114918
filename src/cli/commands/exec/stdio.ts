import type { ChildProcess, StdioOptions } from "node:child_process";
import { fstatSync } from "node:fs";
import type { Readable } from "node:stream";
import { closeWriteEnd, makePipe, type OutputPipe } from "./pipe.js";

/** Which outputs of a child go through us; the others it inherits. */
export interface Masked {
  stdout: boolean;
  stderr: boolean;
}

/** What a child reads from and writes to. */
export interface ChildStdio {
  readonly stdio: StdioOptions;
  /** Closes our copies of what the child writes to: only then its end is the end. */
  handOver(): void;
  /** What the child prints where we read it; undefined where we do not, or where `out` has both. */
  sources(child: ChildProcess): { out: Readable | undefined; err: Readable | undefined };
  /** Reads no more. */
  close(): void;
}

/** Lays pipes for the outputs that are masked. */
export function createChildStdio(masked: Masked): ChildStdio {
  const out = masked.stdout ? makePipe() : undefined;
  // Two pipes would tear apart the order of what goes to one place.
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
