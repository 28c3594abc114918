import { type AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { Connection, ConnectionPage, ConnectionQuery } from "./connection.js";
import type { ClientRecord, Grant, GrantKey } from "./grant.js";
import type { Lease, LeaseOptions } from "./lease.js";
import { IDP_ACCOUNT, isMachineAccount } from "./machine-grant.js";

/** A unit of time in `KeepAliveOptions`. */
export type TimeUnit = keyof typeof UNITS_MS;

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @throws `TypeError` for what is no time */
export function parseTime(time: string): number {
  const [, digits = "", unit = ""] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(time) ?? [];
  const ms = Number(digits) * (UNITS_MS[unit as TimeUnit] ?? 0);
  if (ms >= 10_000 && ms <= 90 * UNITS_MS.d) return ms;
  throw new TypeError("every must be a time such as 24h, 90m or 7d, from 10s to 90d");
}

/** A login as keepAlive sees it. Times are Unix milliseconds. */
export interface DueLogin extends Pick<Connection, "profile" | "server" | "account" | "issuer"> {
  /** When its tokens were issued. */
  readonly obtainedAt: number;
  /** When it is due. A new login is due at once. */
  readonly dueAt: number;
  /** How often its refresh has failed since it was due. */
  readonly failures: number;
}

/** The logins that are due until a time. */
export interface DuePage {
  /** The first of them, in order. */
  items: readonly DueLogin[];
  /** How many there are. */
  total: number;
}

/** The logins of a store by the times when they are due. */
export interface DueLogins {
  /** Those that are due until then. @param countTo how far they are counted at least; default: all are */
  next(until: number, limit: number, countTo?: number): Promise<DuePage>;
  /** Sets when a login is due. @returns false, and changes nothing, if another worker was faster or it has been refreshed */
  plan(login: DueLogin, dueAt: number, failures: number): Promise<boolean>;
  /** Those that have failed. */
  failing(): AsyncIterable<readonly DueLogin[]>;
}

/** Whether a login has a refresh token that is still good. */
export function canBeKept({ account, refreshable }: Pick<Connection, "account" | "refreshable">): boolean {
  return refreshable && (!isMachineAccount(account ?? undefined) || account === IDP_ACCOUNT);
}

/** The logins of a store of one machine: all are read, and this process remembers what is planned. */
export function dueByReading(store: {
  connections(query?: ConnectionQuery): AsyncIterable<ConnectionPage>;
}): DueLogins {
  const plans = new Map<string, DueLogin>();
  const dueName = ({ profile, server, account }: Pick<Connection, "profile" | "server" | "account">) =>
    JSON.stringify([profile, server, account]);
  const read = async (): Promise<DueLogin[]> => {
    const logins: DueLogin[] = [];
    for await (const { items } of store.connections({ limit: 1000 }))
      for (const login of items.filter(canBeKept)) {
        const obtainedAt = Date.parse(login.issued_at);
        const plan = plans.get(dueName(login));
        const { dueAt = obtainedAt } = plan ?? {};
        logins.push({ ...login, obtainedAt, dueAt, failures: plan?.obtainedAt === obtainedAt ? plan.failures : 0 });
      }
    return logins.sort((one, other) => one.dueAt - other.dueAt);
  };
  return {
    next: async (until) => {
      const items = (await read()).filter(({ dueAt }) => dueAt <= until);
      return { items, total: items.length };
    },
    plan: async (login, dueAt, failures) => plans.set(dueName(login), { ...login, dueAt, failures }).size > 0,
    async *failing() {
      yield (await read()).filter(({ failures }) => failures > 0);
    },
  };
}

/** Which grants a list returns: those that have every value that is named here. */
export type GrantFilter = Pick<ConnectionQuery, "profile" | "server" | "issuer">;

export function matchesFilter(grant: Pick<Grant, "profile" | "server" | "issuer">, filter: GrantFilter): boolean {
  const names = ["profile", "server", "issuer"] as const;
  return names.every((name) => filter[name] === undefined || filter[name] === grant[name]);
}

/** Whether the error says that a store failed, for good or for now. */
export function isStoreFailure(error: unknown): error is AgentAuthError {
  return isAgentAuthError(error) && (error.class === "store" || error.code === "store_unavailable");
}

/** Disk space for one save, reserved beforehand: a full disk must be detected before a token is used up, not after. */
export interface Reservation {
  /** As {@link GrantStore.save}. */
  save(grant: Grant, expected: number | undefined): Promise<boolean>;
  /** Releases the space; required after a save too, and may be called more than once. */
  release(): Promise<void>;
}

/**
 * Stores grants between calls. `agentauth` has an in-memory store, `agentauth/node` one in files and one in files that
 * are encrypted with a key in the keychain.
 *
 * A store must
 * - return what was saved, whole or not at all, also after a crash in the middle of a save;
 * - refuse to overwrite a generation that the caller has not read: of many that save over one generation, one succeeds;
 * - keep every other grant usable if one is broken, and never delete what it cannot read;
 * - let at most one holder at a time work under a lease, across all processes that share the store, and pass the lease
 *   of a dead holder to the next one.
 */
export interface GrantStore extends BindingStore {
  /** @throws `AgentAuthError` class `store` if the stored data cannot be used safely */
  read(key: GrantKey): Promise<Grant | undefined>;
  /**
   * Saves a grant if the stored one has the generation `expected` (undefined: if there is none). The grant's own
   * generation must be higher.
   *
   * @returns false if another generation is stored; nothing is changed then
   */
  save(grant: Grant, expected: number | undefined): Promise<boolean>;
  /**
   * Reserves disk space for a save, or throws.
   *
   * @param dueAt when keepAlive refreshes the saved tokens, for a store that has {@link GrantStore.due}
   */
  reserve(key: GrantKey, dueAt?: number): Promise<Reservation>;
  /** Removes a grant, if there is one. */
  remove(key: GrantKey): Promise<void>;
  /**
   * The grants that match a filter and can be read.
   *
   * @param filter default: every grant
   * @param onUnusable called for each one that cannot be read and may match, with the error of {@link GrantStore.read}
   */
  list(filter?: GrantFilter, onUnusable?: (error: AgentAuthError) => void): Promise<Grant[]>;
  /**
   * The stored logins without their secrets, in pages, each read when it is asked for. A login that is there from the first
   * page to the last is returned once. A store over an engine opens no token for this.
   *
   * @throws while it is read, `AgentAuthError` `usage` for a wrong limit, state or cursor
   */
  connections(query?: ConnectionQuery): AsyncIterable<ConnectionPage>;
  /** The client registered with an issuer for a redirect form such as `http://127.0.0.1/callback`. */
  readClient(issuer: string, form: string): Promise<ClientRecord | undefined>;
  /** Stores a client for a redirect form. */
  saveClient(client: ClientRecord, form: string): Promise<void>;
  /** Every client of {@link GrantStore.saveClient}. Optional: without it a copy has only logins and bindings. */
  listClients?(): Promise<ClientRecord[]>;
  /**
   * Runs `work` exclusively under a name, across all processes that share the store.
   *
   * Only the hash of the name is stored. If the work throws an `AgentAuthError`, the next holder gets it as {@link
   * PreviousAttempt.failure}.
   */
  lease<T>(name: string, work: (lease: Lease) => Promise<T>, options: LeaseOptions<T>): Promise<T>;
  /** Where logins wait for their callback, for `AgentClient.startLogin`. Optional: its `saved` then holds them, sealed. */
  readonly shortLived?: ShortLivedRecords | undefined;
  /** The tenant whose logins it has: a login that another tenant began is none of its own. Optional, as {@link GrantStore.for}. */
  readonly tenant?: string | undefined;
  /** The same store for another tenant, for `AgentClient.for`. Optional: without it the store has no tenants. */
  for?(partition: { readonly tenant: string }): GrantStore;
  /** The removed logins that are still to be revoked. Optional: without it a revocation that failed is not tried again. */
  readonly unrevoked?: UnrevokedLogins | undefined;
  /** The logins by the times when `keepAlive` refreshes them. Optional: without it, that reads all logins. */
  readonly due?: DueLogins | undefined;
  /** What speaks against using the store. Optional: a store without it can be used if it can be read. */
  health?(options?: { signal?: AbortSignal | undefined }): Promise<StoreHealth>;
  /** Where the data is stored, as text for the user. */
  readonly location: string;
}

/** What a store says about itself; a sentence in each list is for a person. */
export interface StoreHealth {
  /** Why the store must not be used. */
  readonly errors: readonly string[];
  /** Why logins may be lost although they were stored. */
  readonly risks: readonly string[];
}

/**
 * Reserves disk space for one save during work that cannot be repeated, such as a refresh or a login of the user.
 *
 * @throws `AgentAuthError` class `store`, before the work begins, if nothing could be stored
 */
export async function withReservation<T>(
  store: GrantStore,
  key: GrantKey,
  work: (reservation: Reservation) => Promise<T>,
  dueAt?: number,
): Promise<T> {
  const reservation = await store.reserve(key, dueAt);
  try {
    return await work(reservation);
  } finally {
    await reservation.release();
  }
}

/**
 * How a client was bound to an issuer. All values but `use` are a decision of the user; `use` is a login of a client
 * without a secret at an issuer that only the MCP server named, so no credential of the client may be sent there.
 */
export type BoundBy = "issuer" | "trust-named-issuer" | "confirmation" | "earlier-login" | "use";

export const BOUND_BY = [
  "issuer",
  "trust-named-issuer",
  "confirmation",
  "earlier-login",
  "use",
] as const satisfies readonly BoundBy[];

/** The issuer that a pre-registered client of a profile belongs to. It remains after logouts. */
export interface ClientBinding {
  /** The profile. */
  readonly profile: string;
  /** The `client_id`. */
  readonly clientId: string;
  /** The issuer identifier, byte for byte. */
  readonly issuer: string;
  /** How it was bound. */
  readonly boundBy: BoundBy;
  /** Unix milliseconds. */
  readonly boundAt: number;
}

/** Identifies a binding. */
export type BindingKey = Pick<ClientBinding, "profile" | "clientId">;

/** The part of a store that holds the issuers of pre-registered clients, apart from grants. */
export interface BindingStore {
  /** @throws `AgentAuthError` class `store` if the stored data cannot be used safely */
  readBinding(key: BindingKey): Promise<ClientBinding | undefined>;
  /**
   * Stores a binding if the stored one is exactly `expected` (undefined: none).
   *
   * @returns the binding that is stored afterwards: another one if the stored one was not `expected`
   */
  saveBinding(binding: ClientBinding, expected: ClientBinding | undefined): Promise<ClientBinding>;
  /** @returns whether there was one */
  removeBinding(key: BindingKey): Promise<boolean>;
  /** Every binding, of every profile. */
  listBindings(): Promise<ClientBinding[]>;
}

export function isSameBinding(one: ClientBinding | undefined, other: ClientBinding | undefined): boolean {
  return one?.issuer === other?.issuer && one?.boundBy === other?.boundBy && one?.boundAt === other?.boundAt;
}

/** Texts that every process behind a store can read for a few minutes, such as logins that wait for their callback. */
export interface ShortLivedRecords {
  /**
   * Stores a text, and removes the texts that have expired.
   *
   * @param id unique letters and digits, at most 80
   * @param life Unix milliseconds, by the clock of the caller
   * @returns false if a text is stored under this id; nothing is changed then
   */
  put(id: string, text: string, life: { now: number; expiresAt: number }): Promise<boolean>;
  /**
   * Removes a text and returns it: of several processes that take it, one gets it. The caller checks whether it has
   * expired.
   */
  take(id: string): Promise<string | undefined>;
  /** Returns a text and leaves it there. Optional: without it, workers do not share the `Retry-After` of an issuer. */
  read?(id: string): Promise<string | undefined>;
}

/** Milliseconds for which a login is stored that could not be revoked. */
export const UNREVOKED_MS = 30 * 24 * 3_600_000;

/** Logins that no request uses any more, until their issuers have revoked their tokens; for 30 days at most. */
export interface UnrevokedLogins {
  /** Stores a login. @returns what removes it again */
  add(grant: Grant): Promise<() => Promise<void>>;
  /** Those that are stored and can be read, each with what removes it. */
  list(): AsyncIterable<{ grant: Grant; remove(): Promise<void> }>;
}

/** Records for the processes that need no other process to see them. */
export function memoryRecords(): ShortLivedRecords {
  const records = new Map<string, { text: string; expiresAt: number }>();
  return {
    put: async (id, text, { now, expiresAt }) => {
      for (const [old, record] of records) if (record.expiresAt <= now) records.delete(old);
      if (records.has(id)) return false;
      records.set(id, { text, expiresAt });
      return true;
    },
    take: async (id) => {
      const text = records.get(id)?.text;
      records.delete(id);
      return text;
    },
    read: async (id) => records.get(id)?.text,
  };
}
