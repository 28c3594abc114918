import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseStrictJson } from "../http/strict-json.js";
import { parseUrl } from "../http/url.js";
import { readSecretFile, writeSecretFile } from "./secret-file.js";

/** What other commands need to know of the sandbox that is running. */
export interface SandboxState {
  /** Its process. */
  pid: number;
  /** The base URL of its service. */
  base_url: string;
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

function path(home: string): string {
  return join(home, "sandbox.json");
}

/** The running sandbox, or undefined; a file that a killed one left behind counts for nothing. */
export function readSandboxState(home: string): SandboxState | undefined {
  let state: unknown;
  try {
    state = parseStrictJson(readSecretFile(path(home)));
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
  writeSecretFile(path(home), `${JSON.stringify(state, null, 2)}\n`);
}

/** Removes the file if it is still this process's. */
export function removeSandboxState(home: string, pid: number): void {
  const state = readSandboxState(home);
  if (state === undefined || state.pid === pid) rmSync(path(home), { force: true });
}

/** Removes the file that a sandbox left behind. */
export function forgetSandboxState(home: string): void {
  rmSync(path(home), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
