/** The outputs of a child: how it gets them, and how they are passed on. */

import { type StdioOptions, spawnSync } from "node:child_process";
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileOf } from "../../io/stream.js";
import type { AcquiredProcess } from "../../runtime/context.js";
import { createMasker } from "./masker.js";

/** A pipe of the operating system. */
interface OutputPipe {
  /** The end that the child writes to. */
  readonly writeEnd: number;
  /** The end to read from. */
  readonly readEnd: Readable;
}

/** The standard streams of a child, before it is started. */
export interface ChildStdio {
  readonly stdio: StdioOptions;
  /** Our pipes; undefined where the child inherits the stream, gets a pipe of Node, or has both outputs in the other one. */
  readonly out: OutputPipe | undefined;
  readonly err: OutputPipe | undefined;
}

/** Opens pipes for the masked outputs, and for streams of ours that are no file of the system; a child inherits the rest. */
export function openStdio(
  masked: { stdout: boolean; stderr: boolean },
  own: Pick<AcquiredProcess, "stdin" | "stdout" | "stderr">,
): ChildStdio {
  const [inFile, outFile, errFile] = [fileOf(own.stdin), fileOf(own.stdout), fileOf(own.stderr)];
  const readsOut = masked.stdout || outFile === undefined;
  const readsErr = masked.stderr || errFile === undefined;
  const out = readsOut ? makePipe() : undefined;
  // Two pipes would lose the order of outputs that share one file.
  const isShared = out !== undefined && masked.stderr && isSameFile(outFile, errFile);
  const err = readsErr && !isShared ? makePipe() : undefined;
  const outEnd = readsOut ? (out?.writeEnd ?? "pipe") : "inherit";
  const errEnd = readsErr ? (err?.writeEnd ?? "pipe") : "inherit";
  return { stdio: [inFile === undefined ? "pipe" : "inherit", outEnd, isShared ? outEnd : errEnd], out, err };
}

function isSameFile(outFile: number | undefined, errFile: number | undefined): boolean {
  if (outFile === undefined || errFile === undefined) return false;
  const [out, err] = [fstatSync(outFile), fstatSync(errFile)];
  return out.dev === err.dev && out.ino === err.ino;
}

/**
 * Creates a pipe. Node would use a pair of sockets, which a script that opens /dev/stdout or /dev/stderr cannot open.
 *
 * @returns undefined if the system has no `mkfifo`, or no writable folder for temporary files
 */
function makePipe(): OutputPipe | undefined {
  if (process.platform === "win32") return undefined;
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), "agentauth-"));
    const path = join(folder, "pipe");
    if (spawnSync("mkfifo", ["-m", "600", path], { stdio: "ignore" }).status !== 0) return undefined;
    // Opens the reader first, without blocking: opening the writer blocks until there is a reader.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeEnd = openSync(path, constants.O_WRONLY);
    const { Socket } = process.getBuiltinModule("node:net");
    return { writeEnd, readEnd: new Socket({ fd, readable: true, writable: false }) };
  } catch {
    return undefined;
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Closes our copies of the ends that the child has: only then a read ends when the child ends. */
export function closeWriteEnds({ out, err }: ChildStdio): void {
  for (const pipe of [out, err]) if (pipe) closeSync(pipe.writeEnd);
}

/**
 * Passes on the output of a child, with secrets masked, at the pace of its reader. When the reader closes its end, the
 * child's pipe is closed, as in a shell pipeline.
 *
 * @returns the error; undefined if everything was passed on
 */
export async function passOutput(
  source: Readable,
  target: Writable,
  secrets: () => readonly Buffer[],
): Promise<NodeJS.ErrnoException | undefined> {
  const masker = createMasker(secrets);
  try {
    // On an error, leaving this loop closes the source.
    for await (const chunk of source) await write(target, masker.push(chunk as Buffer));
    await write(target, masker.end());
    return undefined;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
}

function write(target: Writable, bytes: Buffer): Promise<void> {
  if (bytes.length === 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    target.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
