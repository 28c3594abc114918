import { execFileSync } from "node:child_process";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { type PostgresDriverOptions, postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { statementsFor, storeSql, tableNames } from "../../../src/store/postgres/store-sql.js";
import { runCli, temporaryFolder } from "../../helpers/cli.js";
import { startNetwork } from "../../helpers/forgetful-network.js";
import { CLIENTS } from "./clients.js";
import { migrate } from "./migrate.js";
import { MISSING_SERVER, type PostgresServer, startPostgres } from "./postgres-server.js";

const KEY: RecordKey = { kind: "grant", partition: "p", id: "i" };
const CLAIM = { owner: "o", ttlMs: 60_000, note: "n" };

describe.skipIf(MISSING_SERVER)(`a server with a driver${MISSING_SERVER}`, () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
    await migrate(server.options, storeSql());
  });
  afterAll(() => server?.close());

  const run = (sql: string) => migrate(server.options, sql);

  function open(options: PostgresDriverOptions = {}, session: object = {}): StoreDriver {
    const { client, close } = CLIENTS.pg({ ...server.options, ...session });
    onTestFinished(close);
    return postgresDriver({ client }, { timeoutMs: 60_000, ...options });
  }

  function pool(more: object = {}): pg.Pool {
    const made = new pg.Pool({ ...server.options, max: 4, ...more }).on("error", () => {});
    onTestFinished(() => made.end());
    return made;
  }

  it("that stands still ends the wait of every operation, and none hangs after it continues", async () => {
    const driver = open({ timeoutMs: 500 });
    const patient = open();
    const version = await patient.put(KEY, "before", undefined);
    await driver.get(KEY);
    server.signal("SIGSTOP");
    try {
      const calls = [
        driver.get(KEY),
        driver.put(KEY, "late", version),
        driver.delete({ ...KEY, id: "other" }),
        driver.scan({ kind: "grant" }, { limit: 1 }),
        driver.claim(KEY, CLAIM),
        driver.extend(KEY, CLAIM),
        driver.release(KEY, { owner: "o", note: undefined }),
      ];
      const ends = await Promise.allSettled(calls);
      for (const end of ends) expect(end).toMatchObject({ reason: { code: "store_unavailable", retryable: true } });
    } finally {
      server.signal("SIGCONT");
    }
    // What was sent before may happen, as a whole.
    expect(["before", "late"]).toContain((await patient.get(KEY))?.value);
  });

  it("without the tables is given them by what the hint of the command line says", async () => {
    await run("CREATE DATABASE hinted");
    const url = `postgres://postgres@localhost/hinted?host=${server.options.host}`;
    const store = { AGENTAUTH_STORE: "postgres", AGENTAUTH_STORE_URL: url, AGENTAUTH_STORE_KEYS: "none" };
    const env = { AGENTAUTH_HOME: temporaryFolder(), ...store };
    const before = await runCli(["status"], { env });
    expect(before).toMatchObject({ code: 8, stdout: "" });
    const [, hint = ""] = /^hint: run the SQL that (.+) prints on this database$/m.exec(before.stderr) ?? [];
    const { stdout: input } = await runCli(hint.split(" ").slice(1), { env });
    execFileSync("psql", ["-v", "ON_ERROR_STOP=1", "-q", url], { input, stdio: ["pipe", "ignore", "inherit"] });
    expect(await runCli(["status"], { env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("Not logged in"),
    });
  });

  it("reports changes only if the driver notifies", async () => {
    expect(open().watch).toBeUndefined();
    expect(postgresDriver({ query: async () => ({ rows: [] }) }, { notify: true }).watch).toBeUndefined();
    const [silent, watcher] = [open(), open({ notify: true })];
    const changes: RecordKey[] = [];
    const controller = new AbortController();
    const listens = new Promise<void>((resolve) => {
      void watcher.watch?.((key) => changes.push(key), resolve, controller.signal);
    });
    await listens;
    await silent.put({ ...KEY, id: "silent" }, "v", undefined);
    const key = { ...KEY, id: "announced \0:{}" };
    await watcher.put(key, "v", undefined);
    await expect.poll(() => changes).toEqual([key]);
    controller.abort();
  });

  it.each(["pg", "postgres"] as const)("that stands still lets a watch end (%s)", async (name) => {
    const { client, close } = CLIENTS[name](server.options);
    onTestFinished(close);
    const { watch } = postgresDriver({ client }, { notify: true });
    const controller = new AbortController();
    server.signal("SIGSTOP");
    try {
      const ended = watch?.(
        () => {},
        () => {},
        controller.signal,
      );
      setTimeout(() => controller.abort(), 50);
      await ended;
    } finally {
      server.signal("SIGCONT");
    }
  });

  it("without the tables is store_failed, with what to run", async () => {
    const driver = open({ table: "missing" });
    const failure = { code: "store_failed", retryable: false, hint: expect.stringContaining("storeSql()") };
    await expect(driver.get(KEY)).rejects.toMatchObject(failure);
    await expect(driver.claim(KEY, CLAIM)).rejects.toMatchObject(failure);
    await expect(open({ table: "missing.records" }).put(KEY, "v", undefined)).rejects.toMatchObject(failure);
    expect((await driver.health?.())?.errors).toEqual([
      "the table missing is missing: the SQL of the store was not run on this database",
    ]);
  });

  it("lets a role with the privileges work, and refuses one without", async () => {
    await run("CREATE ROLE app LOGIN");
    await expect(open({}, { user: "app" }).get(KEY)).rejects.toMatchObject({
      code: "store_failed",
      retryable: false,
      hint: expect.stringContaining("let this role SELECT"),
    });
    await run(`GRANT SELECT, INSERT, UPDATE, DELETE ON agentauth_record, agentauth_record_lease TO app;
      GRANT USAGE ON SEQUENCE agentauth_record_version TO app`);
    const driver = open({}, { user: "app" });
    const key = { ...KEY, id: "of app" };
    const version = await driver.put(key, "v", undefined, { expiresInMs: 60_000 });
    expect(await driver.delete(key, version)).toBe(true);
    expect(await driver.claim(key, CLAIM)).toMatchObject({ held: true });
    await driver.release(key, { owner: "o", note: undefined });
    expect((await driver.health?.())?.errors).toEqual([]);
  });

  it("has the tables in another schema, under another name", async () => {
    const table = "Auth-1.Records";
    await run(`CREATE SCHEMA "Auth-1"`);
    await run(storeSql({ table }));
    await run(storeSql({ table }));
    const driver = open({ table });
    await driver.put(KEY, "elsewhere", undefined);
    expect((await driver.get(KEY))?.value).toBe("elsewhere");
    expect((await open().get(KEY))?.value).not.toBe("elsewhere");
    expect((await driver.health?.())?.facts).toMatchObject({ schema_version: "1" });
    const { rows } = await run(`SELECT count(*)::int AS n FROM pg_class c JOIN pg_namespace s ON s.oid = relnamespace
      WHERE nspname = 'Auth-1' AND obj_description(c.oid) LIKE 'agentauth%'`);
    expect(rows).toEqual([{ n: 7 }]);
  });

  it("removes what has expired 30 days ago and nothing else", async () => {
    const driver = open();
    for (const id of ["gone", "stays"]) await driver.put({ kind: "login", partition: "s", id }, "v", undefined);
    for (const id of ["old", "held", "new"]) await driver.claim({ kind: "lease", partition: "s", id }, CLAIM);
    await run(`UPDATE agentauth_record SET expires_at = now() WHERE id = 'gone'::bytea;
      UPDATE agentauth_record_lease SET claimed_at = now() - interval '31 days' WHERE id IN ('old', 'held');
      UPDATE agentauth_record_lease SET held_until = now() - interval '31 days' WHERE id = 'old'`);
    // A driver removes it with its first record that expires.
    await open().put({ kind: "login", partition: "s", id: "new" }, "v", undefined, { expiresInMs: 60_000 });
    const ids = async (from: string) => {
      const { rows } = await run(
        `SELECT convert_from(id, 'UTF8') AS id FROM ${from} WHERE partition = 's' ORDER BY id`,
      );
      return rows.map(({ id }) => id);
    };
    expect(await ids("agentauth_record")).toEqual(["new", "stays"]);
    expect(await ids("agentauth_record_lease")).toEqual(["held", "new"]);
  });

  /** Runs an operation while another transaction has changed the row, until that ends. */
  async function behind<T>(change: string, begin: () => Promise<T>, end: string): Promise<T> {
    const other = new pg.Client(server.options);
    await other.connect();
    onTestFinished(() => other.end());
    await other.query(`BEGIN; ${change}`);
    const result = begin();
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while ((await run(waiting)).rowCount === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await other.query(end);
    return result;
  }

  it("takes no put over a record that another transaction is changing, unless that is undone", async () => {
    const driver = open();
    const key = { ...KEY, id: "locked" };
    const version = await driver.put(key, "before", undefined);
    const change = "UPDATE agentauth_record SET version = 0, value = 'changed' WHERE id = 'locked'";
    const put = () => driver.put(key, "late", version);
    expect(await behind(change, put, "ROLLBACK")).toBeDefined();
    const next = (await driver.get(key))?.version;
    expect(await behind(change, () => driver.put(key, "late", next), "COMMIT")).toBeUndefined();
    expect((await driver.get(key))?.value).toBe("changed");
    const removal = "DELETE FROM agentauth_record WHERE id = 'locked'";
    expect(await behind(removal, () => driver.delete(key), "COMMIT")).toBe(false);
  });

  it("shows the claim after an expired one what its owner noted last", async () => {
    const driver = open();
    const key = { ...KEY, id: "noted" };
    const first = await driver.claim(key, CLAIM);
    const expire = "UPDATE agentauth_record_lease SET held_until = clock_timestamp()";
    await run(`${expire} WHERE id = 'noted'`);
    // The owner extends the lease at its last moment, and then it expires.
    const claim = () => driver.claim(key, { ...CLAIM, owner: "next" });
    const second = await behind(`${expire}, note = 'sent' WHERE id = 'noted'`, claim, "COMMIT");
    expect(second).toMatchObject({
      held: true,
      previous: { owner: "o", note: "sent", attempt: first.held && first.attempt },
    });
  });

  it("finds records by the indexes", async () => {
    const plan = async (where: string) => {
      const { rows } = await run(`SET enable_seqscan = off; SET enable_indexscan = off;
        EXPLAIN SELECT FROM agentauth_record WHERE ${where}`).then(
        (results) => (results as unknown as never[]).at(-1) ?? { rows: [] },
      );
      return JSON.stringify(rows);
    };
    expect(await plan(`tags @> '{"a":"b"}'`)).toContain("agentauth_record_tags");
    expect(await plan("expires_at <= now()")).toContain("agentauth_record_expiry");
  });

  it("reads a part of a scan in the order of the index", async () => {
    const { scan } = statementsFor(tableNames(), { notify: false, lockTimeoutMs: 1000 });
    const values = ["grant", "70", null, "70", "69", "100"];
    const { rows } = await pool({ options: "-c enable_seqscan=off" }).query(`EXPLAIN ${scan}`, values);
    expect(JSON.stringify(rows)).toContain("agentauth_record_pkey");
    expect(JSON.stringify(rows)).not.toContain("Sort");
  });

  it.each(["repeatable read", "serializable"])("whose transactions are %s takes a put once", async (isolation) => {
    const driver = open({}, { options: `-c default_transaction_isolation=${isolation.replace(" ", "\\ ")}` });
    const key = { ...KEY, id: isolation };
    const version = await driver.put(key, "first", undefined);
    const puts = await Promise.allSettled(Array.from({ length: 10 }, () => driver.put(key, "next", version)));
    const won = puts.filter((put) => put.status === "fulfilled" && put.value !== undefined);
    expect(won).toHaveLength(1);
    for (const put of puts)
      if (put.status === "rejected") expect(put.reason).toMatchObject({ code: "store_unavailable" });
  });

  it("reports how durable it is, and what forbids its use", async () => {
    expect(await open().health?.()).toMatchObject({
      risks: [],
      errors: [],
      facts: { fsync: "on", synchronous_commit: "on", standby: "no", schema_version: "1" },
    });
    const fast = open({}, { options: "-c synchronous_commit=off" });
    expect((await fast.health?.())?.facts["synchronous_commit"]).toBe("off");
    await run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    expect((await open({}, { database: "latin" }).health?.())?.errors).toHaveLength(2);
    await run("CREATE UNLOGGED TABLE loose (id int)");
    expect((await open({ table: "loose" }).health?.())?.risks).toEqual([
      "the table loose is unlogged: a crash of the server empties it",
    ]);
  });

  it("says which rights, columns and rows a role does not have", async () => {
    await run(`CREATE TABLE few (LIKE agentauth_record); CREATE TABLE few_lease (LIKE agentauth_record_lease);
      CREATE SEQUENCE few_version; ALTER TABLE few DROP COLUMN tags; CREATE ROLE few LOGIN;
      GRANT SELECT, INSERT ON few TO few; ALTER TABLE few_lease ENABLE ROW LEVEL SECURITY`);
    expect((await open({ table: "few" }, { user: "few" }).health?.())?.errors).toEqual([
      "the table few has no tags: it is not that of the SQL of the store",
      "this role may not UPDATE, DELETE the table few",
      "row-level security hides records of the table few_lease from this role",
      "this role may not SELECT, INSERT, UPDATE, DELETE the table few_lease",
      "this role may not use the sequence few_version",
    ]);
  });

  it("refuses a touch where it refuses a put, and what others have locked", async () => {
    const [driver, key] = [open({ timeoutMs: 600 }), { ...KEY, id: "touched" }];
    await driver.put(key, "v", undefined);
    await run("ALTER TABLE agentauth_record ADD CONSTRAINT nothing CHECK (false) NOT VALID");
    await expect(driver.touch?.(key)).rejects.toMatchObject({ code: "store_failed" });
    await run("ALTER TABLE agentauth_record DROP CONSTRAINT nothing");
    const locked = await pool().connect();
    await locked.query("BEGIN; SELECT FROM agentauth_record WHERE id = 'touched'::bytea FOR UPDATE");
    // The server ends the wait: no statement is left behind.
    await expect(driver.touch?.(key)).rejects.toMatchObject({ cause: { code: "55P03" } });
    await locked.query("ROLLBACK");
    locked.release();
    expect(await driver.touch?.(key)).toMatchObject({ value: "v" });
  });

  it("keeps what was stored while synchronous_commit was off, after it was killed", async () => {
    await run("ALTER SYSTEM SET wal_writer_delay = '10s'");
    await run("SELECT pg_reload_conf()");
    const driver = open({}, { options: "-c synchronous_commit=off" });
    const key = { ...KEY, id: "durable" };
    await driver.put(key, "v", undefined);
    await server.kill();
    await server.start();
    expect(await open().get(key)).toMatchObject({ value: "v" });
  });

  it("replaces every connection that the network has forgotten after one statement", async () => {
    const network = await startNetwork(`${server.options.host}/.s.PGSQL.5432`);
    const clients = pool({ host: "127.0.0.1", port: network.port });
    const driver = postgresDriver({ client: clients }, { timeoutMs: 500 });
    await Promise.all(Array.from({ length: 4 }, () => clients.query("SELECT pg_sleep(0.1)")));
    expect(clients.idleCount).toBe(4);
    network.forget();
    await expect(driver.get(KEY)).rejects.toMatchObject({ code: "store_unavailable" });
    await expect.poll(() => clients.totalCount).toBe(0);
    await driver.get(KEY);
    network.close();
  });

  it("that cannot be written to is store_unavailable: a failover may not be over", async () => {
    const driver = open({}, { options: "-c default_transaction_read_only=on" });
    await expect(driver.put(KEY, "v", undefined)).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
    await driver.get(KEY);
  });
});
