import { type AgentAuthError, isAgentAuthError, usageError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { Readers } from "./codec.js";
import { decode, encode, readCount, readEach, readMembers, readNumber, readOptional, readString } from "./codec.js";
import type { Connection, ConnectionPage, ConnectionQuery, ConnectionState } from "./connection.js";
import { CONNECTION_STATES } from "./connection.js";
import { type Grant, hasExpired } from "./grant.js";
import { matchesFilter } from "./grant-store.js";
import { parseMachineAccount } from "./machine-grant.js";

/** What of a grant is a connection; a store over an engine seals it apart from the tokens. Times are Unix milliseconds. */
export interface GrantSummary extends Pick<Grant, "profile" | "server" | "account" | "issuer" | "signedInAt"> {
  readonly scope: string | undefined;
  readonly obtainedAt: number;
  readonly expiresAt: number | undefined;
  readonly usedAt: number;
  /** What a refresh can do: nothing as there is no refresh token (`none`), or nothing any more (`refused`). */
  readonly renewal: Renewal;
  readonly reason: string | undefined;
  /** How often keepAlive has failed to refresh these tokens. */
  readonly failures?: number | undefined;
}

const RENEWALS = ["possible", "lost", "refused", "none"] as const;
type Renewal = (typeof RENEWALS)[number];

export function summarizeGrant(grant: Grant): GrantSummary {
  const { profile, server, account, issuer, signedInAt, tokens, retired } = grant;
  const { scope, obtainedAt, expiresAt } = tokens;
  const usedAt = grant.usedAt ?? obtainedAt;
  const times = { signedInAt, obtainedAt, expiresAt, usedAt };
  const state = { renewal: describeRenewal(grant), reason: retired?.reason };
  return { profile, server, account, issuer, scope, ...times, ...state };
}

function describeRenewal({ retired, lostRefresh, tokens, account }: Grant): Renewal {
  if (retired) return "refused";
  if (lostRefresh) return "lost";
  // A machine uses its own credential.
  return tokens.refreshToken === undefined && parseMachineAccount(account) === undefined ? "none" : "possible";
}

/** A connection at a moment by the clock of the times of its grant. */
export function toConnection(summary: GrantSummary, now: number): Connection {
  const { profile, server, account, issuer, scope, renewal, reason } = summary;
  const { signedInAt, obtainedAt, expiresAt, usedAt } = summary;
  return {
    profile,
    server,
    account: account ?? null,
    issuer,
    state: connectionState(summary, now),
    scope: scope ?? null,
    logged_in_at: timeText(signedInAt),
    issued_at: timeText(obtainedAt),
    expires_at: expiresAt === undefined ? null : timeText(expiresAt),
    last_used_at: timeText(usedAt),
    refreshable: renewal === "possible" || renewal === "lost",
    reason: reason ?? null,
  };
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}

function connectionState(summary: GrantSummary, now: number): ConnectionState {
  const { renewal } = summary;
  if (renewal === "refused") return "needs_login";
  if (renewal === "lost") return "lost_refresh";
  if (!hasExpired(summary, now)) return "valid";
  return renewal === "none" ? "needs_login" : "expired";
}

/** The state that a login is in, or comes to without another change of it; undefined if it can be refreshed. */
export function markedState({ renewal }: GrantSummary): ConnectionState | undefined {
  if (renewal === "possible") return undefined;
  return renewal === "lost" ? "lost_refresh" : "needs_login";
}

export function matchesQuery(connection: Connection, { state, ...filter }: ConnectionQuery): boolean {
  return (state === undefined || state === connection.state) && matchesFilter(connection, filter);
}

const SUMMARY: Readers<Omit<GrantSummary, "renewal">> = {
  ...readEach(readString, "profile", "server", "issuer"),
  ...readEach(readOptional, "account", "scope", "reason"),
  ...readEach(readCount, "signedInAt", "obtainedAt", "usedAt"),
  ...readEach(readNumber, "expiresAt", "failures"),
};

export function encodeSummary(summary: GrantSummary): string {
  return encode({ kind: "summary", ...summary });
}

/** @throws CodecError */
export function decodeSummary(text: string): GrantSummary {
  const members = decode(text, "summary");
  const renewal = RENEWALS.find((one) => one === members["renewal"]) ?? "possible";
  return { ...readMembers(members, SUMMARY), renewal };
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

/** The limit of a query. @throws `AgentAuthError` `usage` for a query that cannot be answered */
export function checkPageLimit({ limit = DEFAULT_LIMIT, state }: ConnectionQuery): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw wrongQuery(`limit is ${quote(limit)}; it is a whole number from 1 to ${MAX_LIMIT}`);
  if (state !== undefined && !CONNECTION_STATES.includes(state))
    throw wrongQuery(`state is ${quote(state)}; it is one of ${CONNECTION_STATES.join(", ")}`);
  return limit;
}

function wrongQuery(message: string): AgentAuthError {
  return usageError(`of connections, ${message}`);
}

/**
 * The connections of a store that opens each of its grants: one on this machine.
 *
 * @param names those of the grants in ascending order, each of them after the cursor
 */
export async function* connectionPages(
  query: ConnectionQuery,
  names: Iterable<string> | AsyncIterable<string>,
  read: (name: string) => Promise<Grant | undefined>,
): AsyncGenerator<ConnectionPage> {
  const limit = checkPageLimit(query);
  if (query.tenant !== undefined) throw wrongQuery(`tenant is ${quote(query.tenant)}, and this store has no tenants`);
  let [items, seen]: [Connection[], number] = [[], 0];
  let last = query.cursor;
  for await (const name of names) {
    if (seen === limit) {
      yield { items, cursor: last };
      [items, seen] = [[], 0];
    }
    seen++;
    last = name;
    const connection = await readUsable(async () => {
      const grant = await read(name);
      return grant && toConnection(summarizeGrant(grant), Date.now());
    }, query.onUnusable);
    if (connection && matchesQuery(connection, query)) items.push(connection);
  }
  yield { items, cursor: undefined };
}

/** Of names in ascending order those that begin with a text, from the first one after a cursor. */
export function namesAfter(sorted: readonly string[], prefix: string, cursor = ""): string[] {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const name = sorted[middle] ?? "";
    if (name < prefix || name <= cursor) from = middle + 1;
    else to = middle;
  }
  if (prefix === "") return sorted.slice(from);
  while (sorted[to]?.startsWith(prefix)) to++;
  return sorted.slice(from, to);
}

/** The result; undefined for a record that cannot be used, because one of those does not hide the others. */
export async function readUsable<T>(
  work: () => Promise<T>,
  onUnusable: (error: AgentAuthError) => void = () => {},
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!isAgentAuthError(error) || (error.class !== "store" && error.class !== "auth")) throw error;
    onUnusable(error);
    return undefined;
  }
}
