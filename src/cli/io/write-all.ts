import type { Writable } from "node:stream";
import { AgentAuthError } from "../../errors.js";

/** The reader closed the pipe. Not a failure: the command stops with exit code 0. */
export class PipeClosed extends Error {
  override readonly name = "PipeClosed";
}

const CHECK_DEVICE = "check the disk or the device that the output goes to";
const CLOSED = new Set(["EPIPE", "ECONNRESET", "EOF", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END"]);

/**
 * Writes text to a stream, and resolves when the reader has taken it and everything before.
 *
 * @throws {@link PipeClosed} if the reader has closed the pipe; {@link AgentAuthError} when the stream fails otherwise
 */
export function writeAll(stream: Writable, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(writeFailure(error)) : resolve()));
  });
}

function writeFailure(error: NodeJS.ErrnoException): Error {
  if (CLOSED.has(error.code ?? "")) return new PipeClosed("the reader closed the pipe", { cause: error });
  return outputError("the output cannot be written", error);
}

/** The error for output that the disk or the device does not take. */
export function outputError(what: string, cause: Error, hint = CHECK_DEVICE): AgentAuthError {
  return new AgentAuthError("store_failed", `${what}: ${cause.message}`, { class: "store", hint, cause });
}
