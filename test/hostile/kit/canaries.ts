import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";

const KINDS = [
  "api-token",
  "client-secret",
  "registered-secret",
  "access-token",
  "refresh-token",
  "id-token",
  "code",
  "device-code",
] as const;

/** The kind of secret that a canary represents. */
export type Canary = (typeof KINDS)[number];

/** Planted secrets, and those that the program generated: none of them may leak. */
export class Canaries {
  readonly #values = new Map<string, string>();

  constructor() {
    for (const kind of KINDS) this.#values.set(kind, `canary-${kind}-${randomBytes(9).toString("hex")}`);
  }

  get(kind: Canary): string {
    return this.#values.get(kind) ?? "";
  }

  /** Adds a secret that a request contained, such as a verifier. */
  add(name: string, value: string): void {
    if (value.length >= 8) this.#values.set(`${name} ${this.#values.size}`, value);
  }

  /** The names of the secrets in a text. */
  in(text: string, allowed: readonly Canary[] = []): string[] {
    return [...this.#values]
      .filter(([name, value]) => text.includes(value) && !allowed.some((kind) => name === kind))
      .map(([name]) => name);
  }
}

/** Every file below a folder, by its path in it. */
export function filesBelow(folder: string): { path: string; mode: number; content: Buffer }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path: relative(folder, path), mode: statSync(path).mode & 0o777, content: readFileSync(path) };
    });
}
