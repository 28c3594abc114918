import { randomBytes } from "node:crypto";
import type { AgentAuthErrorJson } from "../../errors.js";
import { isJsonObject } from "../../http/strict-json.js";
import type { LockOwner } from "./lock-owner.js";

/** The content of a lock file. It contains no secret. */
export interface LockRecord {
  /** Distinguishes it from another one with its number, when all traces of the name were removed in between. */
  readonly id: string;
  readonly holder: LockOwner;
  /** Unix milliseconds. */
  readonly at: number;
  /** By the clock of the holder's boot. */
  readonly deadline: number;
  /** Milliseconds after which the lock expires; with `extend`, after the last heartbeat. */
  readonly duration: number;
  readonly extend: boolean;
}

/** What is recorded when the work under a lock ends. */
export interface LeaseOutcome {
  readonly at: number;
  readonly failure: AgentAuthErrorJson | undefined;
}

/** A unique id for a lock. */
export function lockId(): string {
  return randomBytes(6).toString("hex");
}

/** Parses the content of a lock file; undefined for what this version did not write. */
export function parseLockRecord(value: Record<string, unknown> | undefined): LockRecord | undefined {
  const { id, holder, at, deadline, duration, extend } = value ?? {};
  if (typeof id !== "string" || !isHolder(holder) || typeof extend !== "boolean") return undefined;
  if (!isNumber(at) || !isNumber(deadline) || !isNumber(duration)) return undefined;
  return { id, holder, at, deadline, duration, extend };
}

/** Parses the recorded end of an attempt; undefined for what this version did not write. */
export function parseLeaseOutcome(value: Record<string, unknown> | undefined): LeaseOutcome | undefined {
  const { at, failure } = value ?? {};
  if (!isNumber(at)) return undefined;
  return { at, failure: isFailure(failure) ? failure : undefined };
}

function isHolder(value: unknown): value is LockOwner {
  if (!isJsonObject(value) || !Number.isInteger(value["pid"]) || Number(value["pid"]) < 1) return false;
  return ["boot", "space", "started"].every((name) => typeof value[name] === "string");
}

function isFailure(value: unknown): value is AgentAuthErrorJson {
  if (!isJsonObject(value) || !["code", "class", "message"].every((name) => typeof value[name] === "string"))
    return false;
  const { remedy = { action: "" } } = value;
  return isJsonObject(remedy) && typeof remedy["action"] === "string";
}

function isNumber(value: unknown): value is number {
  return Number.isFinite(value);
}
