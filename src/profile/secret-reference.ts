import { AgentAuthError } from "../errors.js";
import type { Env } from "../platform/environment.js";
import { readSecretFile } from "./secret-file.js";

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
