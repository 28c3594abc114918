import type { Readable, Writable } from "node:stream";
import { createMasker } from "./masker.js";

/**
 * Passes on the output of a child, with secrets masked, at the pace of its reader. When the reader closes its end, the
 * child's pipe is closed, as in a shell pipeline.
 *
 * @returns the error; undefined if everything was passed on
 */
export async function pipeOutput(
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
