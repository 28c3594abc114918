import { createRequire } from "node:module";
import { AgentAuthError } from "../../errors.js";
import type { EngineKind } from "../profile-settings.js";

/** The packages that can reach an engine, in the order in which they are looked for. */
export const PACKAGES = {
  redis: ["redis", "ioredis", "iovalkey"],
  postgres: ["pg", "postgres"],
} as const satisfies Readonly<Record<EngineKind, readonly string[]>>;

export type PackageName = (typeof PACKAGES)[EngineKind][number];

export interface ClientPackage {
  name: PackageName;
  /** Its exports; what CommonJS exports as a whole is the default one. */
  load(): Promise<Record<string, unknown>>;
}

/**
 * The user's package for an engine: beside this program. No folder that holds data is searched, such as the working folder
 * or that of the settings: the package gets the keys of every login.
 *
 * @throws `AgentAuthError` `usage` with the command that installs one
 */
export function findPackage(kind: EngineKind, beside: string = import.meta.url): ClientPackage {
  for (const name of PACKAGES[kind]) {
    const found = packageFrom(beside, name);
    if (found !== undefined) return found;
  }
  const names = PACKAGES[kind];
  throw new AgentAuthError(
    "usage",
    `the store ${kind} needs a client package, and none of ${names.join(", ")} is installed`,
    { class: "usage", hint: `npm install ${names[0]} (add --global if agentauth is installed globally)` },
  );
}

/** A package that a module would get by its name; undefined if none is installed there. */
export function packageFrom(module: string, name: PackageName): ClientPackage | undefined {
  const require = createRequire(module);
  try {
    const path = require.resolve(name);
    return { name, load: async () => ({ default: require(path), ...require(path) }) };
  } catch {
    return undefined;
  }
}
