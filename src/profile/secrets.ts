import { AgentAuthError } from "../errors.js";
import { readClaims } from "../oauth/token/token-checks.js";
import { withoutByteOrderMark } from "../platform/files.js";
import type { Env } from "../platform/system.js";
import { readPrivateFile, writePrivateFile } from "../store/private/private-file.js";
import { storeError } from "../store/store-error.js";
import { secretLineSync, wordsOf } from "./secret-command.js";

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

/** What names a secret: a variable, a file that only its owner can read, or a command that prints it. */
const REFERENCE = /^(env:[A-Za-z_]\w*|(file|exec):.+)$/;

/** The forms of a reference, for messages. */
export const REFERENCES = "env:NAME, file:PATH or exec:COMMAND";

/** Whether a text names a secret. */
export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}

/**
 * The secret that `env:NAME`, `file:PATH` or `exec:COMMAND` names. A command is run once for the process, or until the
 * `exp` of the token that it printed.
 *
 * @param from what has the reference
 */
export function referencedSecret(reference: string, from: string, env: Env): SecretSetting {
  const [kind, ...rest] = reference.split(":");
  const name = rest.join(":");
  const source = `${from}, ${name}`;
  if (kind === "file") return { read: () => readSecretFile(name), source };
  if (kind === "exec") return { read: printedSecret(name, from), source };
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

/** The secret that a text names, or that it is. */
export function secretOrReferenced(text: string, from: string, env: Env): string {
  return isReference(text) ? referencedSecret(text, from, env).read() : text;
}

/** The secret that a flag names: by a reference, or by the path of a file. */
export function namedSecret(named: string, from: string, env: Env): string {
  return isReference(named) ? referencedSecret(named, from, env).read() : readSecretFile(named);
}

function printedSecret(command: string, from: string): () => string {
  let known = { secret: "", endsAt: 0 };
  return () => {
    if (known.endsAt > Date.now()) return known.secret;
    const secret = secretLineSync(wordsOf(command, from), { from });
    const exp = readClaims(secret)?.claims["exp"];
    known = { secret, endsAt: typeof exp === "number" ? exp * 1000 : Number.POSITIVE_INFINITY };
    return secret;
  };
}
