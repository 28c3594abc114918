import { inspect } from "node:util";
import { PGlite } from "@electric-sql/pglite";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, test, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { Version } from "../../../src/store/driver/driver.js";
import type { Subscribe } from "../../../src/store/driver/engine.js";
import type { PostgresAccess } from "../../../src/store/postgres/client.js";
import { checkedListen } from "../../../src/store/postgres/engine.js";
import { type PostgresDriverOptions, postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { storeSql } from "../../../src/store/postgres/store-sql.js";
import { pendingError } from "../../helpers/captured.js";
import { driverContract } from "../driver-contract/driver-contract.js";

const KEY = { kind: "grant", partition: "p", id: "i" } as const;

/** A function that records what it is asked, and answers with these rows, one answer after the other. */
function recorder(...answers: object[][]) {
  const requested: { text: string; values: unknown[] }[] = [];
  const query = async (text: string, values: unknown[]) => {
    requested.push({ text, values });
    return { rows: answers.shift() ?? [] };
  };
  return { requested, query };
}

describe("a client by its shape", () => {
  const rows = [{ version: "7", value: "text" }];
  const found = { key: KEY, version: "7", value: "text" };

  it.each<[string, PostgresAccess]>([
    ["a function", { query: async () => ({ rows }) }],
    ["a function that returns the rows alone", { query: async () => rows }],
    ["a function that renames columns", { query: async () => [{ Version: "7", VALUE: "text" }] }],
    ["an object with query", { client: { query: async () => ({ rows }) } }],
    ["a function with unsafe", { client: Object.assign(() => {}, { unsafe: async () => rows }) }],
  ])("is accepted: %s", async (_, access) => {
    expect(await postgresDriver(access).get(KEY)).toEqual(found);
  });

  it("is called with its own this", async () => {
    class Client {
      readonly rows = rows;
      async query() {
        return { rows: this.rows };
      }
    }
    expect(await postgresDriver({ client: new Client() }).get(KEY)).toEqual(found);
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["no client", {}],
    ["null", { client: null }],
    ["an address", { client: "postgres://app:hunter2@db/app" }],
    ["an object without a method", { client: {} }],
    ["a query that is no function", { query: "SELECT" }],
    ["both", { client: { query: async () => ({ rows }) }, query: async () => ({ rows }) }],
  ])("is refused with what is expected: %s", (_, access) => {
    const open = () => postgresDriver(access as PostgresAccess);
    expect(open).toThrow(expect.objectContaining({ code: "usage", hint: expect.stringContaining("sql of postgres") }));
    expect(open).not.toThrow(/hunter2/);
  });

  it.each([undefined, null, 1, { rows: 1 }])("that resolves to %o is refused", async (result) => {
    const driver = postgresDriver({ query: async () => result });
    expect(await pendingError(driver.get(KEY))).toMatchObject({ code: "usage" });
  });

  it("gets texts alone, and no name of a prepared statement", async () => {
    const { requested, query } = recorder([{ version: "1" }]);
    await postgresDriver({ query }).put(KEY, "v", undefined, { expiresInMs: 1500, tags: { a: "b" } });
    expect(requested[0]?.values).toEqual(["grant", "70", "69", "v", '{"a":"b"}', "1500", null]);
  });
});

describe("options", () => {
  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31])("refuse a time limit of %d", (timeoutMs) => {
    const open = () => postgresDriver(recorder(), { timeoutMs });
    const hint = "set it to a positive number of milliseconds";
    expect(open).toThrow(
      expect.objectContaining({ code: "usage", message: expect.stringContaining("timeoutMs"), hint }),
    );
  });

  it.each<PostgresDriverOptions["table"]>([
    "",
    ".",
    "a.b.c",
    "a.",
    '"; DROP TABLE x; --',
    "a'b",
    "1a",
    "a b",
    "ä",
    "a\0",
    "a".repeat(56),
  ])("refuse the table %o", (table) => {
    const open = () => postgresDriver(recorder(), { table });
    expect(open).toThrow(expect.objectContaining({ code: "usage", message: expect.stringContaining("the table") }));
  });

  it.each([
    [undefined, false],
    [false, false],
    [true, true],
  ])("with notify: %s, let each change be announced: %s", async (notify, isAnnounced) => {
    const { requested, query } = recorder();
    const driver = postgresDriver({ query }, { notify });
    await driver.put(KEY, "v", undefined);
    await driver.put(KEY, "v", "1" as Version);
    await driver.delete(KEY);
    const announced = requested.map(({ text }) => text.includes("pg_notify("));
    expect(announced.slice(0, 3)).toEqual(Array(3).fill(isAnnounced));
  });

  it("let a pool that can listen be watched, where changes are announced", () => {
    const pool = { query: async () => ({ rows: [] }), idleCount: 0, waitingCount: 0 };
    const listening = { ...pool, Client: class {}, options: {} };
    const watched = [
      [listening, true],
      [listening, false],
      [pool, true],
    ].map(([client, notify]) => "watch" in postgresDriver({ client } as PostgresAccess, { notify: notify === true }));
    expect(watched).toEqual([true, false, false]);
  });

  it("take a table whose name is as long as one can be", () => {
    expect(postgresDriver(recorder(), { table: "a".repeat(55) }).location).toBe(`PostgreSQL table ${"a".repeat(55)}`);
  });

  it("quote each part of the table's name", async () => {
    const { requested, query } = recorder();
    await postgresDriver({ query }, { table: "Auth-1.Order" }).get(KEY);
    expect(requested[0]?.text).toContain('FROM "Auth-1"."Order" WHERE');
  });
});

describe("the location", () => {
  const at = (client: object) => postgresDriver({ client: { ...client, query: async () => ({ rows: [] }) } }).location;

  it("has the address that the client shows, and never a connection string", () => {
    const secret = { password: "hunter2", connectionString: "postgres://app:hunter2@db/app" };
    expect(at({ host: "db", port: 5432, database: "app", ...secret })).toBe(
      "PostgreSQL table agentauth_record at db:5432, database app",
    );
    expect(at({ options: { host: ["db", "db2"], port: [1, 2], ...secret } })).toBe(
      "PostgreSQL table agentauth_record at db:1",
    );
    expect(at({ options: secret })).toBe("PostgreSQL table agentauth_record");
  });
});

describe("waiting for the engine", () => {
  const silent = () => new Promise<never>(() => {});

  it("ends after the time limit", async () => {
    const driver = postgresDriver({ query: silent }, { timeoutMs: 5 });
    expect(await pendingError(driver.get(KEY))).toMatchObject({ code: "store_unavailable" });
  });

  it("ends with the caller's signal", async () => {
    const controller = new AbortController();
    const waiting = postgresDriver({ query: silent }).get(KEY, { signal: controller.signal });
    controller.abort();
    expect(await pendingError(waiting)).toMatchObject({ code: "aborted", class: "aborted" });
  });

  it("does not begin with a signal that has fired", async () => {
    const { requested, query } = recorder();
    const driver = postgresDriver({ query });
    expect(await pendingError(driver.get(KEY, { signal: AbortSignal.abort() }))).toMatchObject({ code: "aborted" });
    expect(requested).toEqual([]);
  });

  it("sends nothing more after the end", async () => {
    const controller = new AbortController();
    let requested = 0;
    let fail = (_: Error) => {};
    const query = () => {
      requested++;
      return new Promise((_, reject) => {
        fail = reject;
      });
    };
    const waiting = postgresDriver({ query }).get(KEY, { signal: controller.signal });
    controller.abort();
    expect(await pendingError(waiting)).toMatchObject({ code: "aborted" });
    fail(Object.assign(new Error("conflict"), { code: "40001" }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(requested).toBe(1);
  });

  it("for a lease ends after twenty claims that were not answered", async () => {
    const { requested, query } = recorder();
    const claim = { owner: "o", ttlMs: 1, note: "" };
    expect(await pendingError(postgresDriver({ query }).claim(KEY, claim))).toMatchObject({
      code: "store_unavailable",
    });
    expect(requested).toHaveLength(20);
  });
});

it("saves of one record are sent one after the other, and those of another record beside them", async () => {
  const answers: (() => void)[] = [];
  const query = () =>
    new Promise<object[]>((resolve) => {
      answers.push(() => resolve([{ version: "1" }]));
    });
  const driver = postgresDriver({ query });
  const save = (partition: string, id: string) => driver.put({ kind: "grant", partition, id }, "v", undefined);
  const saves = Promise.all([save("a", "bc"), save("a", "bc"), save("ab", "c")]);
  const sent: number[] = [];
  for (let nth = 0; nth < 3; nth++) {
    await new Promise((resolve) => setImmediate(resolve));
    sent.push(answers.length);
    answers[nth]?.();
  }
  expect(await saves).toEqual(["1", "1", "1"]);
  expect(sent).toEqual([2, 3, 3]);
});

it("a conflict with another transaction is tried once more", async () => {
  let requested = 0;
  const query = async () => {
    if (requested++ === 0) throw Object.assign(new Error("conflict"), { code: "40001" });
    return [{ version: "8" }];
  };
  expect(await postgresDriver({ query }).put(KEY, "v", "7" as Version)).toBe("8");
});

describe("what has expired", () => {
  const swept = (requested: { text: string }[]) => requested.filter(({ text }) => text.includes("SKIP LOCKED")).length;

  it("is removed after a release or a record that expires, at most once a minute", async () => {
    const { requested, query } = recorder();
    const driver = postgresDriver({ query });
    await driver.get(KEY);
    await driver.put(KEY, "v", undefined);
    expect(swept(requested)).toBe(0);
    await driver.release(KEY, { owner: "o", note: undefined });
    await driver.release(KEY, { owner: "o", note: undefined });
    expect(swept(requested)).toBe(1);
    const other = recorder([{ version: "1" }]);
    await postgresDriver(other).put(KEY, "v", undefined, { expiresInMs: 1 });
    expect(swept(other.requested)).toBe(1);
  });

  it("is left where it is if it cannot be removed", async () => {
    const query = async (text: string) => {
      if (text.includes("SKIP LOCKED")) throw Object.assign(new Error("no"), { code: "42501" });
      return [];
    };
    await postgresDriver({ query }).release(KEY, { owner: "o", note: undefined });
  });
});

describe("a place that is no place of this store", () => {
  it.each(["00.0g", "x00.00", "00.00x", "00", "0.00", ".00"])("is refused as the cursor %s", async (cursor) => {
    const { requested, query } = recorder();
    const scan = postgresDriver({ query }).scan({ kind: "grant" }, { limit: 1, cursor });
    await expect(scan).rejects.toMatchObject({
      code: "usage",
      message: `cursor is "${cursor}", which cannot be used`,
      hint: "pass the cursor that the part before returned",
    });
    expect(requested).toEqual([]);
  });

  it("is a version that no record has", async () => {
    const { requested, query } = recorder();
    expect(await postgresDriver({ query }).put(KEY, "v", "1; DROP" as Version)).toBeUndefined();
    expect(requested[0]?.values.at(-1)).toBe("0");
  });
});

/** What a driver throws whose client throws this, and how often it was asked. */
async function failure(thrown: unknown): Promise<{ error: AgentAuthError; requested: number }> {
  let requested = 0;
  const query = async () => {
    requested++;
    throw thrown;
  };
  const error = await postgresDriver({ query })
    .get(KEY)
    .catch((reason) => reason);
  expect(error).toBeInstanceOf(AgentAuthError);
  return { error, requested };
}

const refusal = (code: string, message = "a sentence of the server") => Object.assign(new Error(message), { code });

afterEach(() => void vi.restoreAllMocks());

describe("an error of the engine", () => {
  it.each(["08006", "08P01", "53300", "53100", "57P01", "57P02", "57P03", "57014", "55P03", "25006"])(
    "%s is one that passes",
    async (code) => {
      const { error, requested } = await failure(refusal(code));
      expect(error).toMatchObject({ code: "store_unavailable", class: "unavailable", retryable: true });
      expect(error.message).toBe(
        `PostgreSQL table agentauth_record: the server refused the statement (${code}): "a sentence of the server"`,
      );
      expect(requested).toBe(1);
    },
  );

  it.each(["40001", "40P01"])("%s is one that passes, after three more tries", async (code) => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const timers = vi.spyOn(globalThis, "setTimeout");
    const { error, requested } = await failure(refusal(code));
    expect(error).toMatchObject({ code: "store_unavailable", retryable: true });
    expect(requested).toBe(4);
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual(expect.arrayContaining([15, 30, 60]));
  });

  it.each(["ECONNREFUSED", "ECONNRESET", "EPIPE", "CONNECTION_CLOSED", "CONNECT_TIMEOUT", ""])(
    "%o of a client is one that passes",
    async (code) => {
      const { error } = await failure(refusal(code, "connect 10.0.0.1"));
      expect(error).toMatchObject({ code: "store_unavailable", class: "unavailable", retryable: true });
      expect(error.message).toContain(`the server cannot be reached (${code || "Error"})`);
      expect(Object.keys(error.cause as Error)).toEqual(code === "" ? [] : ["code"]);
    },
  );

  it.each(["timeout exceeded when trying to connect", "Connection terminated unexpectedly", "Query read timeout"])(
    "%o of a client without a code can be searched for",
    async (message) => {
      const { error } = await failure(new Error(message));
      expect(error.message).toContain(`the server cannot be reached (${message})`);
    },
  );

  it.each(["22P02", "23505", "28P01", "3D000", "42501", "42601", "XX000"])("%s is one that stays", async (code) => {
    const { error, requested } = await failure(refusal(code));
    expect(error).toMatchObject({ code: "store_failed", class: "store", retryable: false });
    expect(requested).toBe(1);
  });

  it.each([
    ["28P01", /user name or the password/],
    ["28000", /user name or the password/],
    ["3D000", /database that exists/],
  ])("%s of a connection that is refused says what to correct", async (code, hint) => {
    const { error } = await failure(refusal(code));
    expect(error.hint).toMatch(hint);
  });

  it("names the SQL of the store if the table is missing", async () => {
    const { error } = await failure(refusal("42P01", 'relation "agentauth_record" does not exist'));
    expect(error).toMatchObject({ code: "store_failed", hint: expect.stringContaining("storeSql()") });
    expect(error.remedy).toEqual({ action: "inspect", subject: "tables" });
  });

  it("names the privileges if the role lacks one", async () => {
    const { error } = await failure(refusal("42501"));
    expect(error.hint).toContain("USE the sequence");
  });

  it("shows neither the text of a client's error nor the properties of any", async () => {
    const secret = "postgres://app:hunter2@db/app";
    const parsing = Object.assign(new TypeError(`Invalid URL ${secret}`), { code: "ERR_INVALID_URL", input: secret });
    const losing = new Error(`connection to ${secret} lost`);
    const server = Object.assign(refusal("22021"), { parameters: [secret], where: secret });
    for (const thrown of [parsing, losing, server, secret, undefined, null, { code: secret }]) {
      const { error } = await failure(thrown);
      expect(inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error)).not.toContain("hunter2");
    }
    expect((await failure(parsing)).error).toMatchObject({
      code: "store_failed",
      message: "PostgreSQL table agentauth_record: the client failed (ERR_INVALID_URL)",
    });
  });

  it("escapes what the server writes", async () => {
    const { error } = await failure(refusal("XX000", "\u001b[2Jgone\u202e"));
    expect(error.message).toContain('"\\e[2Jgone\\u{202e}"');
  });

  it("that says nothing is named by its code", async () => {
    const { error } = await failure({ code: "XX000" });
    expect(error.message).toMatch(/refused the statement \(XX000\): ""$/);
  });

  it("that the application's query throws as one of ours stays what it is", async () => {
    const own = new AgentAuthError("tls_failed", "no", { class: "remote" });
    expect((await failure(own)).error).toBe(own);
  });
});

describe("listening that is checked", () => {
  /** A listener, and what its server does: `deliver` sends it a message, `connect` makes it listen. */
  function listening(notify: (message: string) => Promise<unknown>) {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const server = { deliver: (_message: string) => {}, connect: () => {} };
    const listen: Subscribe = async (channel, deliver, connect) => {
      expect(channel).toBe("records");
      Object.assign(server, { deliver, connect });
    };
    const checked = checkedListen(listen, notify, 1000);
    const controller = new AbortController();
    const heard: string[] = [];
    const hear = (what: string) => void heard.push(what);
    void checked.subscribe("records", hear, () => hear("gap"), controller.signal);
    server.connect();
    return { server, heard, problem: checked.problem, abort: () => controller.abort() };
  }

  it("reports what arrives, without the probe, which shows that there is no problem", async () => {
    const { server, heard, problem } = listening(async (message) => server.deliver(message));
    server.deliver("a record");
    await vi.advanceTimersByTimeAsync(1000);
    expect([heard, problem()]).toEqual([["gap", "a record"], undefined]);
  });

  it("has a problem where the probe does not arrive in time, until anything does", async () => {
    const { server, heard, problem } = listening(async () => undefined);
    await vi.advanceTimersByTimeAsync(999);
    expect(problem()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(problem()).toBe(
      "notifications do not arrive on this connection, as behind PgBouncer in transaction mode: a near cache returns a " +
        "login that was changed elsewhere until its ttlMs",
    );
    server.deliver("probe");
    expect([heard, problem()]).toEqual([["gap"], undefined]);
    // It listens again, where nothing arrives any more.
    server.connect();
    await vi.advanceTimersByTimeAsync(1000);
    expect([heard, problem()]).toEqual([["gap", "gap"], expect.any(String)]);
  });

  it("has no problem where the server does not answer, or the listener has ended", async () => {
    const failing = listening(async () => Promise.reject(new Error("the connection is gone")));
    await vi.advanceTimersByTimeAsync(1000);
    expect(failing.problem()).toBeUndefined();
    const { server, heard, problem, abort } = listening(async () => undefined);
    abort();
    server.deliver("a record");
    await vi.advanceTimersByTimeAsync(1000);
    expect([heard, problem()]).toEqual([["gap"], undefined]);
  });
});

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

// PostgreSQL in this process: one connection, and nothing of it can be killed.
describe("PGlite", () => {
  let client: PGlite;

  beforeAll(async () => {
    client = new PGlite();
    await client.exec(storeSql());
  });
  afterAll(() => client.close());

  // Its clock is that of this process, which these rows make wrong.
  const ofOtherClock = /^(?:a lease is free after its ttl|a wrong clock)/;
  const declare = (name: string, run: () => Promise<void>) => (ofOtherClock.test(name) ? test.skip : test)(name, run);
  driverContract({
    test: Object.assign(declare, { skip: test.skip }),
    open: () => postgresDriver({ client }, { timeoutMs: 60_000 }),
    without: ["watch"],
  });

  it("runs the SQL again without a change", async () => {
    const driver = postgresDriver({ client });
    const key = { kind: "grant", partition: "again", id: "i" } as const;
    await driver.put(key, "there", undefined);
    await client.exec(storeSql());
    expect((await driver.get(key))?.value).toBe("there");
  });
});
