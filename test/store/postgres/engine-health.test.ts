import { describe, expect, it } from "vitest";
import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";

/** What a server answers that is as it should be, one column a line, in the order of the statement. */
const SOUND = {
  version: "17.2",
  number: "170002",
  encoding: "UTF8",
  fsync: "on",
  pages: "on",
  commits: "on",
  standbys: "",
  standby: "false",
  comment: "agentauth, version 1: sealed records",
  now: "0",
  behind: "0",
  sequence: "usable",
  record_persistence: "p",
  record_columns: "kind partition id version value tags expires_at",
  record_rights: "",
  record_policies: "false",
  lease_persistence: "p",
  lease_columns: "kind partition id attempt owner note claimed_at held_until released_at",
  lease_rights: "",
  lease_policies: "false",
};

async function health(over: Partial<Record<keyof typeof SOUND, string | null>> = {}) {
  const row = { ...SOUND, now: String(Date.now()), ...over };
  const { clockAheadMs = Number.NaN, ...found } =
    (await postgresDriver({ query: async () => ({ rows: [row] }) }).health?.()) ?? {};
  expect(Math.abs(clockAheadMs)).toBeLessThan(60_000);
  return found;
}

describe("the health of PostgreSQL", () => {
  it("has the facts of a server, and nothing else where it is sound", async () => {
    expect(await health({ standbys: "one" })).toEqual({
      risks: [],
      errors: [],
      facts: {
        version: "17.2",
        synchronous_commit: "on",
        fsync: "on",
        full_page_writes: "on",
        async_standbys: "0",
        synchronous_standby_names: "one",
        schema_version: "1",
        standby: "no",
      },
    });
  });

  it.each<[Parameters<typeof health>[0], string]>([
    [{ fsync: "off" }, "fsync is off: a crash of the machine may lose records, or all of them"],
    [{ pages: "off" }, "full_page_writes is off: a crash of the machine may damage the tables"],
    [
      { behind: "1" },
      "asynchronous standbys: 1: a failover to one of them may lose the newest logins, and then refresh tokens may be used twice",
    ],
    [{ record_persistence: "u" }, "the table agentauth_record is unlogged: a crash of the server empties it"],
    [{ lease_persistence: "u" }, "the table agentauth_record_lease is unlogged: a crash of the server empties it"],
  ])("names the risk of %o", async (over, risk) => {
    expect(await health(over)).toMatchObject({ risks: [risk], errors: [] });
  });

  it("names the risk of heartbeats that wait for a connection of a pool, once one has waited", async () => {
    const pool = { idleCount: 0, waitingCount: 0, query: async () => ({ rows: [{ ...SOUND }] }) };
    const driver = postgresDriver({ client: pool });
    const beat = () => driver.extend({ kind: "grant", partition: "p", id: "i" }, { owner: "o", ttlMs: 1, note: "" });
    await beat();
    expect((await driver.health?.())?.risks).toEqual([]);
    pool.waitingCount = 1;
    await beat();
    pool.waitingCount = 0;
    await beat();
    expect((await driver.health?.())?.risks).toEqual([
      "heartbeats have waited for a connection of the pool: give the store a pool of its own, of at least 4 connections",
    ]);
  });

  it.each<[Parameters<typeof health>[0], string]>([
    [{ number: "129999" }, "PostgreSQL 13 or later is needed"],
    [{ encoding: "LATIN1" }, "the encoding of the database is not UTF8, so that some texts cannot be stored"],
    [{ standby: "true" }, "the server is a standby: it cannot be written to, and reads may be out of date"],
    [
      { record_persistence: null },
      "the table agentauth_record is missing: the SQL of the store was not run on this database",
    ],
    [
      { lease_persistence: null },
      "the table agentauth_record_lease is missing: the SQL of the store was not run on this database",
    ],
    [
      { sequence: "missing" },
      "the sequence agentauth_record_version is missing: the SQL of the store was not run on this database",
    ],
    [{ sequence: "forbidden" }, "this role may not use the sequence agentauth_record_version"],
    [{ comment: "agentauth, version 99: sealed" }, "the tables are of version 99: update agentauth"],
    [
      { record_columns: "kind partition id version value" },
      "the table agentauth_record has no tags, expires_at: it is not that of the SQL of the store",
    ],
    [{ lease_policies: "true" }, "row-level security hides records of the table agentauth_record_lease from this role"],
    [{ record_rights: "INSERT, DELETE" }, "this role may not INSERT, DELETE the table agentauth_record"],
  ])("names the error of %o", async (over, error) => {
    expect(await health(over)).toMatchObject({ risks: [], errors: [error] });
  });

  it.each(["130000", "170002"])("accepts the version %s", async (number) => {
    expect(await health({ number })).toMatchObject({ errors: [] });
  });
});
