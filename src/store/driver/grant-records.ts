import type { AgentAuthError } from "../../errors.js";
import { CodecError, decodeGrant, encodeGrant } from "../../oauth/model/codec.js";
import type { ConnectionPage, ConnectionQuery } from "../../oauth/model/connection.js";
import { type Grant, type GrantKey, hasSameTokens } from "../../oauth/model/grant.js";
import type { DueLogin, DueLogins, GrantFilter, Reservation } from "../../oauth/model/grant-store.js";
import { canBeKept, matchesFilter } from "../../oauth/model/grant-store.js";
import {
  checkPageLimit,
  decodeSummary,
  encodeSummary,
  markedState,
  matchesQuery,
  readUsable,
  summarizeGrant,
  toConnection,
} from "../../oauth/model/grant-summary.js";
import type { PutOptions, RecordKey, StoredRecord } from "./driver.js";
import { type EngineClock, isUnanswered, onClock, type StoreClock, timesOnClock } from "./engine.js";
import { type NearGrants, NewestGrants } from "./remembered-grants.js";
import { besideGrant, grantTags, isSameRecord, type TenantRecords } from "./tenant-records.js";

const REPAIRS = 3;

/** The grants of one tenant. The times of their tokens are stored by the clock of the engine. */
export class GrantRecords {
  readonly #records: TenantRecords;
  readonly #clock: StoreClock;
  readonly #engineClock: EngineClock;
  readonly #near: NearGrants | undefined;
  readonly #newest: NewestGrants;

  /** As {@link GrantStore.due}; only the summaries are opened. */
  readonly due: DueLogins;

  /** @param engine what is the same for all tenants */
  constructor(
    records: TenantRecords,
    { clock, engineClock, near }: { clock: StoreClock; engineClock: EngineClock; near: NearGrants | undefined },
  ) {
    this.#records = records;
    this.#clock = clock;
    this.#engineClock = engineClock;
    this.#near = near;
    this.#newest = new NewestGrants(clock);
    this.due = {
      next: (until, limit, countTo) => this.#nextDue(until, limit, countTo),
      plan: (login, dueAt, failures) => this.#plan(login, dueAt, failures),
      failing: () => this.#failing(),
    };
  }

  key({ profile, server, account }: GrantKey): Promise<RecordKey> {
    return this.#records.key("grant", profile, server, account);
  }

  async read(grantKey: GrantKey): Promise<Grant | undefined> {
    const key = await this.key(grantKey);
    const near = this.#near?.get(key.id);
    if (near !== undefined) return near;
    const at = this.#clock.now();
    const [stored, aheadMs] = await Promise.all([this.#current(key), this.#engineClock.aheadMs()]);
    const grant = stored && onClock(stored, aheadMs);
    if (grant) this.#near?.set(key.id, grant, at);
    return grant;
  }

  async save(grant: Grant, expected: number | undefined): Promise<boolean> {
    const key = await this.key(grant);
    return this.#saveOver(key, grant, expected, await this.#records.driver.get(key));
  }

  async reserve(grantKey: GrantKey, dueAt?: number): Promise<Reservation> {
    const key = await this.key(grantKey);
    const { driver } = this.#records;
    const before = await (driver.touch ? driver.touch(key) : driver.get(key));
    const tries = new Set<string>();
    return {
      save: async (grant, expected) => {
        const stored = await driver.get(key);
        // A save whose response was lost.
        if (stored && tries.has(stored.value)) return true;
        // The grant of another login may have the same generation.
        return isSameRecord(stored, before) && this.#saveOver(key, grant, expected, stored, { tries, dueAt });
      },
      release: async () => {},
    };
  }

  /** As {@link NewestGrants.rotatedGeneration}. */
  async rotatedGeneration(grant: Grant): Promise<number | undefined> {
    return this.#newest.rotatedGeneration((await this.key(grant)).id, grant);
  }

  async remove(grantKey: GrantKey): Promise<void> {
    const key = await this.key(grantKey);
    this.#forget(key);
    await this.#records.driver.delete(key);
    // Of a read that began before.
    this.#forget(key);
  }

  async list(filter: GrantFilter, onUnusable: (error: AgentAuthError) => void): Promise<Grant[]> {
    const found = await this.#records.scan("grant", await grantTags(this.#records.name, filter));
    const read = (record: StoredRecord) => readUsable(() => this.#decode(record), onUnusable);
    const [aheadMs, grants] = await Promise.all([this.#engineClock.aheadMs(), Promise.all(found.map(read))]);
    return grants
      .filter((grant) => grant !== undefined)
      .filter((grant) => matchesFilter(grant, filter))
      .map((grant) => onClock(grant, aheadMs));
  }

  /** As {@link GrantStore.connections}; only the summaries are opened. */
  async *connections(query: ConnectionQuery): AsyncGenerator<ConnectionPage> {
    const limit = checkPageLimit(query);
    const tags = await grantTags(this.#records.name, query);
    const read = (record: StoredRecord) =>
      readUsable(() => this.#records.decodeSummary(record, decodeSummary), query.onUnusable);
    const part = { tags, limit, cursor: query.cursor };
    for await (const { items, cursor } of this.#records.pages("grant", part)) {
      const [aheadMs, summaries] = await Promise.all([this.#engineClock.aheadMs(), Promise.all(items.map(read))]);
      const connections = summaries
        .filter((summary) => summary !== undefined)
        .map((one) => ({ ...one, ...timesOnClock(one, aheadMs), usedAt: one.usedAt + aheadMs }))
        .map((summary) => toConnection(summary, this.#clock.epoch()));
      yield { items: connections.filter((connection) => matchesQuery(connection, query)), cursor };
    }
  }

  async #nextDue(until: number, limit: number, countTo: number | undefined): ReturnType<DueLogins["next"]> {
    const aheadMs = await this.#engineClock.aheadMs();
    // Those that cannot be read must not hide the others.
    for (let most = limit; ; most *= 2) {
      const { items, total } = await this.#records.due("grant", Math.floor(until - aheadMs), { limit: most, countTo });
      const logins = await this.#dueLogins(items, aheadMs);
      if (logins.length >= limit || items.length < most) return { items: logins.slice(0, limit), total };
    }
  }

  async *#failing(): AsyncGenerator<DueLogin[]> {
    const tags = await grantTags(this.#records.name, { isFailing: true });
    for await (const { items } of this.#records.pages("grant", { tags }))
      yield this.#dueLogins(items, await this.#engineClock.aheadMs());
  }

  async #dueLogins(records: readonly StoredRecord[], aheadMs: number): Promise<DueLogin[]> {
    const logins = await Promise.all(
      records.map(async (record) => {
        const summary = await readUsable(() => this.#records.decodeSummary(record, decodeSummary));
        if (summary === undefined) return [];
        const { profile, server, account = null, issuer, failures = 0 } = summary;
        const dueAt = (record.dueAt ?? summary.obtainedAt) + aheadMs;
        return [{ profile, server, account, issuer, obtainedAt: summary.obtainedAt + aheadMs, dueAt, failures }];
      }),
    );
    return logins.flat();
  }

  async #plan({ account, obtainedAt, ...login }: DueLogin, dueAt: number, failures: number): Promise<boolean> {
    const aheadMs = await this.#engineClock.aheadMs();
    const record = await this.#records.driver.get(await this.key({ ...login, account: account ?? undefined }));
    const summary = record && (await this.#records.decodeSummary(record, decodeSummary));
    if (record === undefined || summary?.obtainedAt !== obtainedAt - aheadMs) return false;
    if ((summary.failures ?? 0) !== login.failures) return false;
    const tags = await grantTags(this.#records.name, {
      ...summary,
      state: markedState(summary),
      isFailing: failures > 0,
    });
    const options = { tags, dueAt: Math.floor(dueAt - aheadMs) };
    return this.#records.replaceSummary(record, encodeSummary({ ...summary, failures }), options);
  }

  /** The newest grant: the stored one, or one that this process saved and the engine has lost, which is put back. */
  async #current(key: RecordKey): Promise<Grant | undefined> {
    for (let repairs = 0; ; repairs++) {
      const record = await this.#records.driver.get(key);
      const stored = record && (await this.#decode(record));
      if (record === undefined || stored === undefined) {
        this.#forget(key);
        return undefined;
      }
      const newer = this.#newest.newerThan(key.id, stored);
      if (newer === undefined || repairs === REPAIRS) return stored;
      if (await this.#putBack(key, newer, record)) return newer;
    }
  }

  /** @returns false if another process changed the record in between */
  async #putBack(key: RecordKey, grant: Grant, record: StoredRecord): Promise<boolean> {
    try {
      const text = encodeGrant(grant, await this.#records.open(key, record.value));
      return await this.#records.write(key, text, record, await besideGrant(this.#records.name, grant));
    } catch (error) {
      // The tokens of the stored generation are used up, also while it cannot be replaced.
      if (isUnanswered(error)) return true;
      throw error;
    }
  }

  async #saveOver(
    key: RecordKey,
    grant: Grant,
    expected: number | undefined,
    before: StoredRecord | undefined,
    { tries, dueAt }: { tries?: Set<string>; dueAt?: number | undefined } = {},
  ): Promise<boolean> {
    // An unreadable grant is not replaced.
    const stored = before && (await this.#decode(before));
    if (stored?.generation !== expected) return false;
    if (grant.generation <= (expected ?? -1))
      throw new RangeError("a generation must be higher than the one it replaces");
    const aheadMs = await this.#engineClock.aheadMs();
    const there = onClock(grant, -aheadMs);
    const options = { tries, dueAt: dueAfter(there, stored, dueAt && Math.floor(dueAt - aheadMs)) };
    const text = encodeGrant(there, stored && before && (await this.#records.open(key, before.value)));
    const beside = await besideGrant(this.#records.name, there);
    if (!(await this.#records.write(key, text, before, { ...options, ...beside }))) return false;
    this.#near?.drop(key.id);
    this.#newest.remember(key.id, there);
    return true;
  }

  /** The grant in a record; undefined if the key that protects it was deleted. */
  async #decode(record: StoredRecord): Promise<Grant | undefined> {
    const { key, value } = record;
    const known = this.#newest.decodedFrom(key.id, value);
    if (known) return known;
    const grant = await this.#records.decode(record, async (text) => {
      const found = decodeGrant(text);
      // A record that was put in the place of another one.
      if ((await this.key(found)).id !== key.id) throw new CodecError("it contains another login");
      return found;
    });
    if (grant) this.#newest.remember(key.id, grant, value);
    return grant;
  }

  #forget({ id }: RecordKey): void {
    this.#newest.forget(id);
    this.#near?.drop(id);
  }
}

/** When a saved grant is due: never, when it was planned, as before, or, if it is new, at once. */
function dueAfter(grant: Grant, before: Grant | undefined, plannedAt: number | undefined): PutOptions["dueAt"] {
  const isKept = (one: Grant) => canBeKept(toConnection(summarizeGrant(one), 0));
  if (!isKept(grant)) return null;
  if (before === undefined || !isKept(before)) return Math.floor(grant.tokens.obtainedAt);
  return hasSameTokens(grant, before) ? undefined : plannedAt;
}
