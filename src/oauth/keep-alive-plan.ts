import type { Connection } from "./model/connection.js";
import type { Grant, GrantKey } from "./model/grant.js";
import { IDP_ACCOUNT, isMachineAccount } from "./model/machine-grant.js";

/** A unit of time in {@link KeepAliveOptions}. */
export type TimeUnit = keyof typeof UNITS_MS;

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LEAST_MS = 10_000;
const MOST_MS = 90 * UNITS_MS.d;

/** @throws `TypeError` for what is no time */
export function millisecondsOf(time: string): number {
  const [, digits = "", unit = ""] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(time) ?? [];
  const ms = Number(digits) * (UNITS_MS[unit as TimeUnit] ?? 0);
  if (!(ms >= LEAST_MS && ms <= MOST_MS))
    throw new TypeError("every must be a time such as 24h, 90m or 7d, from 10s to 90d");
  return ms;
}

/** A login whose turn comes. Times are Unix milliseconds. */
export interface Due {
  tenant: string | undefined;
  key: GrantKey;
  issuer: string;
  issuedAt: number;
  /** When it should be refreshed. */
  due: number;
  /** When it will be, so that not too many are at once. */
  at: number;
}

/** How often each login is refreshed: once in `everyMs`, in the last part of it, `jitter`. */
export interface Rhythm {
  everyMs: number;
  jitter: number;
}

/** By how much a minute may exceed the mean. */
const PEAK = 1.75;
/** So many refreshes in a minute are never too many. */
const FEW_PER_MINUTE = 10;

/** The time between two refreshes with which no minute has far more of them than the mean. */
export function gapMsFor(logins: number, { everyMs, jitter }: Rhythm): number {
  const meanMs = (everyMs * (1 - jitter / 2)) / logins;
  return Math.min(meanMs / PEAK, UNITS_MS.m / FEW_PER_MINUTE);
}

/** When a login should be refreshed: the same in every worker. */
export function dueOf(
  tenant: string | undefined,
  { profile, server, account, issuer, issued_at }: Connection,
  { everyMs, jitter }: Rhythm,
): Due {
  const key = { profile, server, account: account ?? undefined };
  const issuedAt = Date.parse(issued_at);
  // Each refresh has another place in the time, so that logins of one hour do not stay together.
  const share = hashOf(JSON.stringify([tenant, profile, server, account, issued_at])) / 2 ** 32;
  const due = issuedAt + everyMs * (1 - jitter * share);
  return { tenant, key, issuer, issuedAt, due, at: due };
}

/** Whether a login has a refresh token that is still good. */
export function canBeKept({ account, refreshable }: Connection): boolean {
  const isOfMachine = isMachineAccount(account ?? undefined) && account !== IDP_ACCOUNT;
  return refreshable && !isOfMachine;
}

/** Whether a login has been refreshed, or has ended, since it was planned. */
export function isDone({ tokens, retired }: Grant, { issuedAt, due }: Due, now: number): boolean {
  const isNewer = now - tokens.obtainedAt < (due - issuedAt) / 2;
  return isNewer || retired !== undefined || tokens.refreshToken === undefined;
}

/** Puts a login into a plan in order. */
export function insert(plan: Due[], one: Due): void {
  const at = plan.findIndex((other) => other.at > one.at);
  plan.splice(at === -1 ? plan.length : at, 0, one);
}

/** A number below 2^32 that is the same in every process (FNV-1a, with the finalizer of MurmurHash3). */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
