import type { ChildProcess, StdioOptions } from "node:child_process";
import { fstatSync } from "node:fs";
import type { Readable } from "node:stream";
import { fileOf } from "../../io/stream.js";
import type { LentProcess } from "../../runtime/context.js";
import { closeWriteEnd, makePipe, type OutputPipe } from "./pipe.js";

/** Which outputs of a child are masked. */
export interface Masked {
  stdout: boolean;
  stderr: boolean;
}

/** The standard streams of a child. */
export interface ChildStdio {
  readonly stdio: StdioOptions;
  /** Closes our copies of the write ends: only then a read ends when the child ends. */
  handOver(): void;
  /** Passes on standard input where the child does not inherit it, and returns the outputs to read; `out` may carry both. */
  connect(child: ChildProcess): { out: Readable | undefined; err: Readable | undefined };
  /** Stops reading. */
  close(): void;
}

type Streams = Pick<LentProcess, "stdin" | "stdout" | "stderr">;

/** Creates pipes for the masked outputs, and for streams of ours that are no file of the system; a child inherits the rest. */
export function createChildStdio(masked: Masked, { stdin, stdout, stderr }: Streams): ChildStdio {
  const [outFile, errFile] = [fileOf(stdout), fileOf(stderr)];
  const isPiped = { stdout: masked.stdout || outFile === undefined, stderr: masked.stderr || errFile === undefined };
  const out = isPiped.stdout ? makePipe() : undefined;
  // Two pipes would lose the order of outputs that share one file.
  const isShared = out !== undefined && masked.stderr && isSameFile(outFile, errFile);
  const err = isPiped.stderr && !isShared ? makePipe() : undefined;
  const pipes = [out, err].filter((pipe) => pipe !== undefined);
  const end = (piped: boolean, pipe: OutputPipe | undefined) => (piped ? (pipe?.writeEnd ?? "pipe") : "inherit");
  const input = fileOf(stdin) === undefined ? "pipe" : "inherit";
  let fallback: (Readable | null)[] = [];
  return {
    stdio: [input, end(isPiped.stdout, out), end(isPiped.stderr, isShared ? out : err)],
    handOver: () => pipes.forEach(closeWriteEnd),
    connect(child) {
      if (child.stdin !== null) stdin.on("error", () => {}).pipe(child.stdin.on("error", () => {}));
      fallback = [child.stdout, child.stderr];
      return { out: out?.readEnd ?? child.stdout ?? undefined, err: err?.readEnd ?? child.stderr ?? undefined };
    },
    close() {
      for (const source of [...pipes.map((pipe) => pipe.readEnd), ...fallback]) source?.destroy();
    },
  };
}

function isSameFile(outFile: number | undefined, errFile: number | undefined): boolean {
  if (outFile === undefined || errFile === undefined) return false;
  const [out, err] = [fstatSync(outFile), fstatSync(errFile)];
  return out.dev === err.dev && out.ino === err.ino;
}
