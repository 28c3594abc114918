import { AgentAuthError } from "../errors.js";
import { withoutByteOrderMark } from "../platform/files.js";
import type { Env } from "../platform/system.js";
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

/** A secret that is read when it is needed. */
export interface SecretSetting {
  /** @throws `AgentAuthError` if it cannot be read */
  read(): string;
  /** Where it comes from, without the secret. */
  source: string;
}

/** What names a secret: a variable, or a file that only its owner can read. */
const REFERENCE = /^(env:[A-Za-z_]\w*|file:.+)$/;

/** Whether a text names a secret. */
export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}

/**
 * The secret that `env:NAME` or `file:PATH` names.
 *
 * @param from what has the reference
 */
export function referencedSecret(reference: string, from: string, env: Env): SecretSetting {
  const [kind, ...rest] = reference.split(":");
  const name = rest.join(":");
  const source = `${from}, ${name}`;
  if (kind === "file") return { read: () => readSecretFile(name), source };
  return {
    source,
    read() {
      const value = env[name];
      if (value) return value;
      throw new AgentAuthError("usage", `the environment variable ${name}, named by ${from}, is not set`, {
        class: "usage",
      });
    },
  };
}
