import { setTimeout as sleep } from "node:timers/promises";
import { Redis as IoRedis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import type { RedisConnection } from "../../../src/store/redis/connection.js";
import { type RedisDriverOptions, redisDriver } from "../../../src/store/redis/redis-driver.js";
import { startNetwork } from "../../helpers/forgetful-network.js";
import { sayWithoutLab } from "../../helpers/lab.js";
import { HAS_REDIS, startRedis } from "../../helpers/redis-server.js";
import { CLIENTS, connectRedis } from "./clients.js";

sayWithoutLab("the Redis driver with ioredis 5 and iovalkey");
const missing = HAS_REDIS ? "" : " (left out: redis-server is not installed)";
const KEY: RecordKey = { kind: "grant", partition: "p", id: "one" };
const CLAIM = { owner: "a", ttlMs: 60_000, note: "note" };
const DAY_MS = 86_400_000;

/** A server, a driver of it, and the client to look at what it has. */
async function open(options: readonly string[] = [], driverOptions: RedisDriverOptions = {}) {
  const server = await startRedis(options);
  const { client, close } = await connectRedis(server.port);
  onTestFinished(async () => {
    close();
    await server.close();
  });
  return { server, client, driver: redisDriver({ client }, driverOptions) };
}

async function eventually(attempt: () => Promise<boolean>): Promise<void> {
  while (!(await attempt())) await sleep(20);
}

function answers(driver: StoreDriver): Promise<boolean> {
  return driver.get(KEY).then(
    () => true,
    () => false,
  );
}

describe.skipIf(!HAS_REDIS)(`the Redis driver and its engine${missing}`, () => {
  it("loads its scripts again after the engine forgot them", async () => {
    const { client, driver } = await open();
    const version = await driver.put(KEY, "text", undefined);
    await client.scriptFlush();
    expect(await driver.put(KEY, "newer", version)).toBeDefined();
    await client.scriptFlush();
    expect(await driver.get(KEY)).toMatchObject({ value: "newer" });
  });

  it("fails within the timeout when the engine is stopped, and works when it continues", async () => {
    const { server, driver } = await open([], { timeoutMs: 200 });
    await driver.put(KEY, "text", undefined);
    await server.kill("SIGSTOP");
    const unavailable = { code: "store_unavailable", retryable: true, message: expect.stringMatching(/in 0.2 s/) };
    await expect(driver.claim(KEY, CLAIM)).rejects.toMatchObject(unavailable);
    await server.kill("SIGCONT");
    await eventually(() => answers(driver));
    expect(await driver.get(KEY)).toMatchObject({ value: "text" });
  });

  it.each(Object.entries(CLIENTS))(
    "replaces a connection of %s that the network has forgotten",
    async (_name, connect) => {
      const { server } = await open();
      const network = await startNetwork(server.port);
      const { client, close } = await connect(network.port);
      onTestFinished(() => {
        close();
        network.close();
      });
      const driver = redisDriver({ client } as RedisConnection, { timeoutMs: 1500 });
      await driver.put(KEY, "text", undefined);
      network.forget();
      await expect(driver.get(KEY)).rejects.toMatchObject({ code: "store_unavailable" });
      await eventually(() => answers(driver));
      expect(await driver.get(KEY)).toMatchObject({ value: "text" });
    },
  );

  it("says which commands are forbidden, and refuses a touch then", async () => {
    const { client, server, driver } = await open();
    await driver.put(KEY, "text", undefined);
    await client.sendCommand(["ACL", "SETUSER", "app", "on", "nopass", "~*", "&*", "+@all", "-hset", "-zadd"]);
    const { client: other, close } = await connectRedis(server.port, { username: "app", password: "any" });
    onTestFinished(close);
    const limited = redisDriver({ client: other });
    const errors = ["the user of the client may not run HSET, ZADD on the keys of the store"];
    expect(await limited.health?.()).toMatchObject({ errors });
    await expect(limited.touch?.(KEY)).rejects.toMatchObject({
      code: "store_failed",
      hint: expect.stringMatching(/let the user/),
    });
  });

  it("does not send later what it gave up while the client was offline", async () => {
    const { server, driver } = await open([], { timeoutMs: 200 });
    await driver.put(KEY, "text", undefined);
    await server.kill("SIGKILL");
    await eventually(async () => !(await answers(driver)));
    const other: RecordKey = { ...KEY, id: "given up" };
    await expect(driver.put(other, "text", undefined)).rejects.toMatchObject({ code: "store_unavailable" });
    await server.restart();
    await eventually(() => answers(driver));
    expect(await driver.get(other)).toBeUndefined();
  });

  it("stores under names of the core alone, and lets nothing expire but what was put so", async () => {
    const { client, driver } = await open();
    await driver.put(KEY, "text", undefined, { tags: { tag: "value" } });
    await driver.put({ ...KEY, kind: "login" }, "text", undefined, { expiresInMs: 60_000 });
    await driver.claim(KEY, CLAIM);
    await driver.claim({ ...KEY, id: "two" }, CLAIM);
    await driver.release({ ...KEY, id: "two" }, { owner: "a", note: "failed" });
    const keys = (await client.keys("*")).sort();
    const own = ["i:grant", "i:login", "l", "l:grant:one", "l:grant:two", "r:grant:one", "r:login:one"];
    const partition = [...own, "seq", "t:grant:tag=value"].map((name) => `aa:{p}:${name}`);
    expect(keys).toEqual([...partition, "aa:p:grant", "aa:p:login"].sort());
    const expiring = [];
    for (const key of keys) if ((await client.pTTL(key)) !== -1) expiring.push(key);
    expect(expiring).toEqual(["aa:{p}:r:login:one"]);
  });

  it("leaves nothing of a deleted record but the state of its partition", async () => {
    const { client, driver } = await open();
    const version = await driver.put(KEY, "text", undefined, { tags: { tag: "old" } });
    await driver.put(KEY, "newer", version, { tags: { tag: "new" } });
    expect(await client.exists("aa:{p}:t:grant:tag=old")).toBe(0);
    await driver.delete(KEY);
    await driver.claim(KEY, CLAIM);
    await driver.release(KEY, { owner: "a", note: undefined });
    expect((await client.keys("*")).sort()).toEqual(["aa:p:grant", "aa:{p}:seq"]);
  });

  it("forgets leases that ended 30 days ago, and no other", async () => {
    const { client, driver } = await open();
    for (const id of ["abandoned", "released", "extended"]) await driver.claim({ ...KEY, id }, CLAIM);
    await driver.release({ ...KEY, id: "released" }, { owner: "a", note: "done" });
    const old = Date.now() - 31 * DAY_MS;
    const lease = (id: string) => `aa:{p}:l:grant:${id}`;
    for (const id of ["abandoned", "released", "extended"])
      await client.zAdd("aa:{p}:l", { score: old, value: lease(id) });
    await client.hSet(lease("abandoned"), "u", old);
    await client.hSet(lease("released"), "r", old);
    await driver.claim({ ...KEY, id: "other" }, CLAIM);
    expect(await client.exists([lease("abandoned"), lease("released")])).toBe(0);
    expect(await driver.extend({ ...KEY, id: "extended" }, CLAIM)).toBe(true);
    expect((await client.zRange("aa:{p}:l", 0, -1)).sort()).toEqual([lease("extended"), lease("other")]);
  });

  it("does not pile up the names of expired records", async () => {
    const { client, driver } = await open();
    const put = (id: string, expiresInMs: number) =>
      driver.put({ kind: "login", partition: "p", id }, "text", undefined, { expiresInMs, tags: { tag: "value" } });
    for (let index = 0; index < 60; index += 1) await put(`old-${index}`, 1);
    await eventually(async () => (await client.keys("aa:{p}:r:*")).length === 0);
    for (let index = 0; index < 60; index += 1) await put(`new-${index}`, 600_000);
    expect(await client.zCard("aa:{p}:i:login")).toBeLessThan(100);
    expect(await client.zCard("aa:{p}:t:login:tag=value")).toBeLessThan(100);
    const { items } = await driver.scan({ kind: "login", partition: "p" }, { limit: 1000 });
    expect(items).toHaveLength(60);
    expect(await client.zCard("aa:{p}:i:login")).toBe(60);
  });

  it("finds a record of a partition that was registered before the engine lost everything", async () => {
    const { client, driver } = await open();
    await driver.put(KEY, "text", undefined);
    await client.flushAll();
    await driver.put(KEY, "text", undefined);
    expect((await driver.scan({ kind: "grant" }, { limit: 10 })).items).toHaveLength(1);
  });

  it("finds a record of a partition that a failover removed from those that are registered", async () => {
    const { client, driver } = await open();
    const version = await driver.put(KEY, "text", undefined);
    await client.del("aa:p:grant");
    await driver.put(KEY, "newer", version);
    expect((await driver.scan({ kind: "grant" }, { limit: 10 })).items).toHaveLength(1);
  });

  it("never uses a version again after the engine lost its newest writes", async () => {
    const { client, driver } = await open();
    const version = Number(await driver.put(KEY, "text", undefined));
    await client.flushAll();
    expect(Number(await driver.put(KEY, "text", undefined))).toBeGreaterThan(version);
  });

  it("works with a client that prefixes keys and returns numbers as texts", async () => {
    const { server } = await open();
    const client = new IoRedis(server.port, "127.0.0.1", { keyPrefix: "app{1}:", stringNumbers: true });
    onTestFinished(() => client.disconnect());
    const driver = redisDriver({ client });
    const version = await driver.put(KEY, "text", undefined, { tags: { tag: "old" } });
    await driver.put(KEY, "newer", version, { tags: { tag: "new" } });
    const found = async (tag: string) => (await driver.scan({ ...KEY, tags: { tag } }, { limit: 10 })).items.length;
    expect([await found("old"), await found("new")]).toEqual([0, 1]);
    expect((await driver.scan({ kind: "grant" }, { limit: 10 })).items).toHaveLength(1);
    expect(await driver.claim(KEY, CLAIM)).toMatchObject({ held: true, previous: undefined });
    expect(await driver.delete(KEY)).toBe(true);
    expect(await driver.delete(KEY)).toBe(false);
  });
});

describe.skipIf(!HAS_REDIS)(`what the Redis driver reports of its engine${missing}`, () => {
  it.each(["allkeys-lru", "allkeys-random"])("an engine that evicts by %s must not be used", async (policy) => {
    const { client, driver } = await open(["--maxmemory-policy", policy]);
    expect(await driver.health?.()).toMatchObject({ errors: [expect.stringContaining(policy)] });
    const allowing = redisDriver({ client }, { allowEviction: true });
    const health = await allowing.health?.();
    expect(health).toMatchObject({ errors: [], risks: expect.arrayContaining([expect.stringContaining(policy)]) });
  });

  it.each(["noeviction", "volatile-lru"])("an engine that evicts by %s may be used", async (policy) => {
    const { driver } = await open(["--maxmemory-policy", policy]);
    expect(await driver.health?.()).toMatchObject({ errors: [], facts: { maxmemory_policy: policy } });
  });

  it("an engine without an append-only file may lose records", async () => {
    const { driver } = await open(["--appendonly", "no"]);
    const health = await driver.health?.();
    expect(health).toMatchObject({ facts: { aof: "off", server: "redis", replicas: "0" } });
    expect(health?.risks).toEqual([expect.stringMatching(/append-only file is off/)]);
    expect(Math.abs(health?.clockAheadMs ?? Number.NaN)).toBeLessThan(60_000);
  });

  it.each(Object.entries(CLIENTS))(
    "an engine that writes before each answer has no risk for %s",
    async (_name, connect) => {
      const { server, client } = await open();
      const { client: own, close } = await connect(server.port);
      onTestFinished(close);
      const driver = redisDriver({ client: own });
      expect(await driver.health?.()).toMatchObject({ risks: [], facts: { appendfsync: "always" } });
      await client.configSet("appendfsync", "everysec");
      expect(await driver.health?.()).toMatchObject({ risks: [expect.stringMatching(/^appendfsync is everysec/)] });
      await client.aclSetUser("default", "-config");
      const risks = [expect.stringMatching(/^appendfsync could not be read/)];
      expect(await driver.health?.()).toMatchObject({ errors: [], risks });
    },
  );

  it("a replica must not be used", async () => {
    const primary = await open();
    const replica = await open(["--replicaof", `127.0.0.1 ${primary.server.port}`]);
    expect(await replica.driver.health?.()).toMatchObject({ errors: [expect.stringMatching(/is a replica/)] });
    const readonly = { code: "store_unavailable", message: expect.stringMatching(/READONLY/) };
    await expect(replica.driver.put(KEY, "text", undefined)).rejects.toMatchObject(readonly);
  });

  it("a full engine is unavailable, and evicts logins before anything else", async () => {
    const { client, driver } = await open(["--maxmemory-policy", "volatile-ttl"]);
    const version = await driver.put(KEY, "text", undefined);
    await driver.claim(KEY, CLAIM);
    const login = (id: string) => ({ kind: "login", partition: "p", id }) as const;
    await driver.put(login("one"), "x".repeat(100_000), undefined, { expiresInMs: 600_000 });
    // Less than the server has by itself: everything that may be evicted is.
    await client.configSet("maxmemory", "1000000");
    const full = { code: "store_unavailable", class: "unavailable", message: expect.stringMatching(/OOM/) };
    await expect(driver.put(KEY, "newer", version)).rejects.toMatchObject(full);
    expect(await client.exists("aa:{p}:r:login:one")).toBe(0);
    await client.configSet("maxmemory", "0");
    expect(await driver.get(KEY)).toMatchObject({ version, value: "text" });
    expect(await driver.extend(KEY, CLAIM)).toBe(true);
  });

  it("an engine that wants a password, or allows too little, is refused with advice", async () => {
    const { client, driver } = await open();
    await client.aclSetUser("reader", ["on", "nopass", "~*", "+get"]);
    await client.sendCommand(["AUTH", "reader", "canary-password"]);
    const refused = await driver.get(KEY).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "store_failed", retryable: false, hint: expect.stringContaining("EVALSHA") });
    const { server, client: admin } = await open();
    await admin.configSet("requirepass", "canary-password");
    const unknown = new IoRedis(server.port, "127.0.0.1", { enableReadyCheck: false });
    unknown.on("error", () => {});
    onTestFinished(() => unknown.disconnect());
    const error = await redisDriver({ client: unknown })
      .get(KEY)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "store_failed", hint: expect.stringContaining("password") });
  });
});

describe.skipIf(!HAS_REDIS)(`the wait for replicas of the Redis driver${missing}`, () => {
  const waits = async (client: Awaited<ReturnType<typeof open>>["client"]) =>
    Number(/cmdstat_wait:calls=(\d+)/.exec(await client.info("commandstats"))?.[1] ?? 0);

  it("waits after a grant if there is a replica, and only then", async () => {
    const { server, client, driver } = await open();
    await driver.put(KEY, "text", undefined);
    expect(await waits(client)).toBe(0);
    await open(["--replicaof", `127.0.0.1 ${server.port}`]);
    await eventually(async () => (await client.info("replication")).includes("connected_slaves:1"));
    expect((await driver.health?.())?.risks).toContainEqual(expect.stringContaining("min-replicas-to-write"));
    expect(await driver.put({ ...KEY, id: "two" }, "text", undefined)).toBeDefined();
    expect(await waits(client)).toBe(1);
    await driver.put({ ...KEY, kind: "client" }, "text", undefined);
    await redisDriver({ client }, { wait: false }).put({ ...KEY, id: "three" }, "text", undefined);
    expect(await waits(client)).toBe(1);
  });
});
