import { rmSync } from "node:fs";
import { join } from "node:path";
import { AgentAuthError } from "../errors.js";
import { isLoopbackHost, parseUrl } from "../http/address.js";
import { parseStrictJson } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { checkTrustedFolder } from "../store/private/private-file.js";
import { readSecretFile, writeSecretFile } from "./secrets.js";
import type { Sourced } from "./settings.js";

/** What other commands need to know of the sandbox that is running. */
export interface SandboxState {
  /** Its process. */
  pid: number;
  /** The base URL of its service. */
  base_url: string;
  /** The address at which clients reach it through a proxy; this machine uses the base URL, where it listens. */
  public_url?: string;
  /** The API token of its service. */
  api_token: string;
  /** The token of its admin API. */
  control_token: string;
  /** An account. */
  account_id: string;
  /** A domain of that account. */
  domain_id: string;
  /** A pool of that domain. */
  pool_id: string;
  /** The protected MCP server. */
  mcp_url: string;
}

function statePath(home: string): string {
  return join(home, "sandbox.json");
}

/** The running sandbox, or undefined; a file that a killed one left behind counts for nothing. */
export function readSandboxState(home: string | undefined): SandboxState | undefined {
  if (home === undefined) return undefined;
  let state: unknown;
  try {
    checkTrustedFolder(home);
    state = parseStrictJson(readSecretFile(statePath(home)));
  } catch {
    return undefined;
  }
  return isState(state) && isAlive(state.pid) ? state : undefined;
}

function isState(value: unknown): value is SandboxState {
  if (typeof value !== "object" || value === null) return false;
  const { pid, ...texts } = value as Record<string, unknown>;
  // To ask for 0 or a negative number is to ask for a group of processes.
  if (!Number.isSafeInteger(pid) || (pid as number) <= 0) return false;
  return TEXTS.every((name) => typeof texts[name] === "string") && parseUrl(texts["base_url"]) !== undefined;
}

const TEXTS = ["base_url", "api_token", "control_token", "account_id", "domain_id", "pool_id", "mcp_url"] as const;

export function writeSandboxState(home: string, state: SandboxState): void {
  writeSecretFile(statePath(home), `${JSON.stringify(state, null, 2)}\n`);
}

/** Removes the file if it is still this process's. */
export function removeSandboxState(home: string, pid: number): void {
  const state = readSandboxState(home);
  if (state === undefined || state.pid === pid) rmSync(statePath(home), { force: true });
}

/** Removes the file that a sandbox left behind. */
export function forgetSandboxState(home: string): void {
  rmSync(statePath(home), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The prefix of every token of the sandbox. */
const SANDBOX_PREFIX = "sandbox_";

/**
 * Checks that a token and an address belong to the same world: the sandbox's tokens go to this machine only, and the
 * running sandbox is given no other.
 *
 * @returns the token
 * @throws `AgentAuthError` `bad_authtoken`; nothing was sent
 */
export function checkSandboxToken(
  { value: token, source }: Sourced,
  baseUrl: Sourced,
  home: string | undefined,
): string {
  const { hostname, origin } = new URL(baseUrl.value);
  if (!isLoopbackHost(hostname)) {
    if (!token.startsWith(SANDBOX_PREFIX)) return token;
    throw wrongTokenError(
      `the API token (${source}) is a sandbox's, and ${quote(baseUrl.value)} (${baseUrl.source}) is no sandbox`,
      "give the token of this service, or use the sandbox with --profile sandbox",
    );
  }
  const sandbox = readSandboxState(home);
  const isOwn = token.startsWith(SANDBOX_PREFIX) || token === sandbox?.api_token;
  if (isOwn || sandbox === undefined || new URL(sandbox.base_url).origin !== origin) return token;
  throw wrongTokenError(
    `the API token (${source}) is not the sandbox's, and ${quote(baseUrl.value)} (${baseUrl.source}) is a sandbox`,
    "unset AGENTAUTH_API_TOKEN for the sandbox, whose own token comes with --profile sandbox",
  );
}

/** As the service itself refuses a token. */
function wrongTokenError(message: string, hint: string): AgentAuthError {
  return new AgentAuthError("bad_authtoken", message, { class: "auth", hint });
}
