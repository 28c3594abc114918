import { renameSync, utimesSync } from "node:fs";
import { join } from "node:path";
import type { ShortLivedRecords } from "../../oauth/model/short-lived.js";
import { codeOf, patiently } from "../../platform/contention.js";
import { statOf } from "../../platform/stat.js";
import {
  attempt,
  checkPrivateFolders,
  discardFile,
  listFolder,
  makePrivateFolder,
  readPublishedFile,
  removeFile,
  temporaryPath,
} from "../private/private-file.js";
import { publishPrivateFile, reservePrivateFile } from "../private/published-file.js";
import { onFiles, storeError } from "../store-error.js";
import type { Cipher } from "./cipher.js";

/** Short-lived records in files that only their owner can read; the time of a file is that at which it expires. */
export function fileRecords(home: string, cipher: Cipher | undefined): ShortLivedRecords {
  const folder = join(home, "pending");
  const pathOf = (id: string) => {
    if (!/^[a-z0-9-]{1,80}$/.test(id)) throw new TypeError("an id has at most 80 letters and digits");
    return join(folder, `${id}.json`);
  };
  return {
    put: onFiles(home, async (id: string, text: string, { now, expiresAt }: { now: number; expiresAt: number }) => {
      const path = pathOf(id);
      const content = cipher ? await cipher.seal(text, `pending:${id}`) : text;
      makePrivateFolder(folder);
      checkPrivateFolders(folder);
      removeExpired(folder, now);
      const temporary = reservePrivateFile(path, content.length);
      try {
        if (!publishPrivateFile(temporary, path, content)) return false;
      } finally {
        discardFile(temporary);
      }
      // It is stored, though without its time for a short while only.
      attempt(() => patiently(() => utimesSync(path, new Date(expiresAt), new Date(expiresAt))));
      return true;
    }),
    take: onFiles(home, async (id: string) => {
      checkPrivateFolders(folder);
      const path = pathOf(id);
      const taken = temporaryPath(path);
      try {
        // Of two processes that rename a file, one succeeds.
        patiently(() => renameSync(path, taken));
      } catch (cause) {
        if (codeOf(cause) === "ENOENT") return undefined;
        throw storeError(`the file ${path} cannot be taken`, cause);
      }
      try {
        const content = readPublishedFile(taken);
        return content !== undefined && cipher ? await cipher.open(content, `pending:${id}`) : content;
      } finally {
        removeFile(taken);
      }
    }),
  };
}

/** Milliseconds in which another process still writes a file, and sets its time. */
const GRACE_MS = 60_000;

function removeExpired(folder: string, now: number): void {
  for (const name of listFolder(folder)) {
    const path = join(folder, name);
    const stat = statOf(path);
    if (stat && stat.mtimeMs + GRACE_MS <= now) removeFile(path);
  }
}
