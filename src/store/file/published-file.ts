import { constants, linkSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, patiently } from "../../platform/contention.js";
import { storeError } from "../store-error.js";
import { attempt, discardFile, inUse, syncFolder, temporaryPath, writeSynced } from "./private-file.js";

/**
 * Creates a temporary file beside `path`, with `bytes` allocated on the disk, for {@link publishPrivateFile}.
 *
 * @returns its path
 */
export function reservePrivateFile(path: string, bytes: number): string {
  const temporary = temporaryPath(path);
  try {
    writeSynced(temporary, Buffer.alloc(bytes), constants.O_CREAT | constants.O_EXCL);
  } catch (cause) {
    discardFile(temporary);
    throw storeError(`the folder ${dirname(path)} cannot be written`, cause, inUse(cause));
  }
  return temporary;
}

/**
 * Writes the content of a reserved file and publishes it under its name, atomically and durably.
 *
 * @returns false when the name is taken, or the reserved file is gone; nothing is changed then
 */
export function publishPrivateFile(temporary: string, path: string, content: string): boolean {
  try {
    writeSynced(temporary, content, 0);
    patiently(() => linkSync(temporary, path));
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "EEXIST" || code === "ENOENT") return false;
    throw storeError(`the file ${path} cannot be written`, cause, inUse(cause) ?? noLinks(code));
  }
  // It is saved: nothing that fails from here on may say otherwise.
  discardFile(temporary);
  attempt(() => syncFolder(dirname(path)));
  return true;
}

/** The advice for a file system without hard links. */
export function noLinks(code: string | undefined): string | undefined {
  // EISDIR is what Windows answers for exFAT.
  const codes = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EISDIR"];
  if (code === undefined || !codes.includes(code)) return undefined;
  return "the file system has no hard links; set AGENTAUTH_HOME to a folder on one that has them";
}
