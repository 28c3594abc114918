import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseStrictJson } from "../http/strict-json.js";
import { readSecretFile, writeSecretFile } from "./secret-file.js";

/** What other commands need to know of the sandbox that is running. */
export interface SandboxState {
  pid: number;
  base_url: string;
  api_token: string;
  control_token: string;
  account_id: string;
  domain_id: string;
  pool_id: string;
}

function path(home: string): string {
  return join(home, "sandbox.json");
}

/** The running sandbox, or undefined; a file that a killed one left behind counts for nothing. */
export function readSandboxState(home: string): SandboxState | undefined {
  let state: SandboxState;
  try {
    state = parseStrictJson(readSecretFile(path(home))) as SandboxState;
  } catch {
    return undefined;
  }
  return isAlive(state.pid) ? state : undefined;
}

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

function isAlive(pid: unknown): boolean {
  if (!Number.isSafeInteger(pid)) return false;
  try {
    process.kill(pid as number, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
