import { withoutByteOrderMark } from "../platform/text.js";
import { readPrivateFile, writePrivateFile } from "../store/private/private-file.js";
import { storeError } from "../store/store-error.js";

const MAX_BYTES = 64 * 1024;

/**
 * Reads a file that holds one secret, at most 64 KiB; a byte order mark and one line break at its end are left out.
 *
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function readSecretFile(path: string): string {
  const text = readPrivateFile(path, MAX_BYTES);
  if (text === undefined) throw storeError(`the file ${path} cannot be read`, { code: "ENOENT" });
  return withoutByteOrderMark(text, `the file ${path}`).replace(/\r?\n$/, "");
}

/** Writes a file that only this user can read, whole or not at all. */
export const writeSecretFile: (path: string, content: string) => void = writePrivateFile;
