import { createRequire } from "node:module";
import { isAgentAuthError, orUndefined, usageError } from "../../errors.js";
import type { Env } from "../../platform.js";
import { escapeText, quote } from "../../redact.js";
import type { StoreDriver } from "../../store/driver/driver.js";
import type { EngineKind } from "../profile-settings.js";
import { isReference, referencedSecret, type SecretSetting } from "../secrets.js";

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
  throw usageError(
    `the store ${kind} needs a client package, and none of ${names.join(", ")} is installed`,
    `npm install ${names[0]} (add --global if agentauth is installed globally)`,
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

export interface EngineAddress {
  /** With its credentials. */
  url: string;
  /** Without them: text for the user. */
  location: string;
  host: string;
  port: number;
  database: string;
}

const ENGINES: Readonly<
  Record<EngineKind, { name: string; schemes: readonly string[]; port: number; example: string }>
> = {
  redis: { name: "Redis", schemes: ["redis:", "rediss:"], port: 6379, example: "redis://127.0.0.1:6379/0" },
  postgres: {
    name: "PostgreSQL",
    schemes: ["postgres:", "postgresql:"],
    port: 5432,
    example: "postgres://127.0.0.1:5432/agentauth",
  },
};

/**
 * Reads and checks the address of an engine. No message shows more of it than its scheme.
 *
 * @param hide receives what is secret in it, so that every output masks it
 * @throws `AgentAuthError` `usage`
 */
export function readAddress(
  kind: EngineKind,
  setting: SecretSetting | undefined,
  hide: (secret: string) => void = () => {},
): EngineAddress {
  const { schemes, port: usual, example } = ENGINES[kind];
  if (setting === undefined)
    throw usageError(
      `the store ${kind} needs the address of the engine, and store_url is not set`,
      `set AGENTAUTH_STORE_URL, for example to ${example}; or keep it: agentauth config set store_url file:<path>`,
    );
  const text = setting.read();
  const where = `store_url (${setting.source})`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw usageError(`${where} is not an address`, `it must be like ${example}`);
  hideSecrets(url, text, hide);
  if (!schemes.includes(url.protocol)) {
    const problem = `${where} begins with ${quote(url.protocol)}: the store ${kind} needs ${schemes.join(" or ")}`;
    throw usageError(problem, `it must be like ${example}`);
  }
  // PostgreSQL takes the folder of its Unix socket as a parameter.
  const host = (kind === "postgres" && url.searchParams.get("host")) || url.hostname;
  if (host === "") throw usageError(`${where} names no host`, `it must be like ${example}`);
  const database = decodePart(url.pathname.slice(1), where);
  if (kind === "redis" && !/^\d*$/.test(database))
    throw usageError(`${where} has a path that is no number of a database`, `it must be like ${example}`);
  const port = url.port === "" ? usual : Number(url.port);
  return { url: text, host, port, database, location: describeLocation(kind, `${host}:${port}`, database) };
}

/**
 * The engine of an address on the command line, which every program of the user can read: a reference to it where it has a
 * password.
 *
 * @throws `AgentAuthError` `usage`
 */
export function givenAddress(
  text: string,
  flag: string,
  env: Env,
  hide: (secret: string) => void = () => {},
): { kind: EngineKind; url: SecretSetting } {
  const isNamed = isReference(text);
  const url = isNamed ? referencedSecret(text, flag, env) : { read: () => text, source: flag };
  const address = url.read();
  const scheme = URL.canParse(address) ? new URL(address).protocol : "";
  const kind = (["redis", "postgres"] as const).find((one) => ENGINES[one].schemes.includes(scheme));
  if (kind === undefined)
    throw usageError(`${flag} is no address of Redis or PostgreSQL`, `it must be like ${ENGINES.redis.example}`);
  // Its secrets are known from here on.
  readAddress(kind, url, hide);
  if (isNamed || collectSecrets(new URL(address)).length === 0) return { kind, url };
  throw usageError(
    `${flag} has a password in it, which other programs can read on the command line`,
    `put the address into the environment or a private file: ${flag} env:NAME or file:PATH; and change the password`,
  );
}

function describeLocation(kind: EngineKind, host: string, database: string): string {
  if (kind === "redis") return escapeText(`redis at ${host}/${database || "0"}`);
  return escapeText(`PostgreSQL table agentauth_record at ${host}${database === "" ? "" : `, database ${database}`}`);
}

/** A password is masked as it is written, and as it is meant. */
function hideSecrets(url: URL, text: string, hide: (secret: string) => void): void {
  const secrets = collectSecrets(url);
  if (secrets.length > 0) hide(text);
  for (const secret of secrets) {
    hide(secret);
    hide(orUndefined(() => decodeURIComponent(secret)) ?? secret);
  }
}

/** PostgreSQL takes a password among the parameters too. */
function collectSecrets({ password, searchParams }: URL): string[] {
  return [password, ...searchParams.getAll("password")].filter((secret) => secret !== "");
}

function decodePart(path: string, where: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw usageError(`${where} has a path that is not percent-encoded`);
  }
}

export interface ConnectedDriver {
  driver: StoreDriver;
  close(): Promise<void>;
}

/** A driver that can be closed; the next operation connects again. */
export interface ClosableDriver extends StoreDriver {
  close(): Promise<void>;
  health: NonNullable<StoreDriver["health"]>;
}

/** An open connection would keep the process of a program alive that is done. */
const IDLE_MS = 1000;

interface Used {
  opened: Promise<ConnectedDriver>;
  running: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * A driver that connects at its first operation, closes the connection when it was idle for a second, and connects again
 * after the engine did not answer.
 */
export function lazyDriver(
  kind: EngineKind,
  location: string,
  connect: () => Promise<ConnectedDriver>,
): ClosableDriver {
  let current: Used | undefined;
  const end = async (used: Used) => {
    if (current === used) current = undefined;
    clearTimeout(used.timer);
    const opened = await used.opened.catch(() => undefined);
    await opened?.close().catch(() => {});
  };
  const use = async <T>(work: (driver: StoreDriver) => Promise<T>): Promise<T> => {
    current ??= { opened: connect(), running: 0, timer: undefined };
    const used = current;
    used.running++;
    clearTimeout(used.timer);
    try {
      return await work((await used.opened).driver);
    } catch (error) {
      // Others may still wait on this connection, but no new operation begins there.
      if (current === used && (!isAgentAuthError(error) || error.code === "store_unavailable")) current = undefined;
      throw error;
    } finally {
      used.running--;
      if (used.running === 0) {
        if (current === used) used.timer = setTimeout(() => void end(used), IDLE_MS);
        else void end(used);
      }
    }
  };
  return {
    system: kind === "redis" ? "redis" : "postgresql",
    location,
    get: (...args) => use((driver) => driver.get(...args)),
    touch: (...args) => use(async (driver) => (driver.touch ? driver.touch(...args) : driver.get(...args))),
    put: (...args) => use((driver) => driver.put(...args)),
    delete: (...args) => use((driver) => driver.delete(...args)),
    scan: (...args) => use((driver) => driver.scan(...args)),
    claim: (...args) => use((driver) => driver.claim(...args)),
    extend: (...args) => use((driver) => driver.extend(...args)),
    release: (...args) => use((driver) => driver.release(...args)),
    health: (...args) =>
      use(async (driver) => (await driver.health?.(...args)) ?? { clockAheadMs: 0, risks: [], errors: [], facts: {} }),
    close: async () => {
      if (current) await end(current);
    },
  };
}
