import { describe, expect, it } from "vitest";
import type { Version } from "../../../src/store/driver/driver.js";
import type { PostgresAccess } from "../../../src/store/postgres/client.js";
import { type PostgresDriverOptions, postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { pendingError } from "../../helpers/captured.js";

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
    expect(await pendingError(driver.get(KEY))).toMatchObject({
      code: "usage",
      message: expect.stringContaining("no rows"),
    });
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
    await driver.release(KEY, { owner: "o", note: undefined });
    const announced = requested.map(({ text }) => text.includes("pg_notify("));
    expect(announced.slice(0, 4)).toEqual(Array(4).fill(isAnnounced));
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
    expect(await pendingError(driver.get(KEY))).toMatchObject({
      code: "store_unavailable",
      retryable: true,
      message: "PostgreSQL table agentauth_record did not answer in 0.005 s",
    });
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
      message: "PostgreSQL table agentauth_record: the lease changed during each of 20 attempts to claim it",
    });
    expect(requested).toHaveLength(20);
  });
});

describe("saves of one record", () => {
  it("are sent one after the other, and those of another record beside them", async () => {
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
});

describe("a conflict with another transaction", () => {
  it("is tried once more", async () => {
    let requested = 0;
    const query = async () => {
      if (requested++ === 0) throw Object.assign(new Error("conflict"), { code: "40001" });
      return [{ version: "8" }];
    };
    expect(await postgresDriver({ query }).put(KEY, "v", "7" as Version)).toBe("8");
  });
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
