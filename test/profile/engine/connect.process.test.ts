import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { connectWith } from "../../../src/profile/engine/connect.js";
import { type EngineAddress, type PackageName, packageFrom } from "../../../src/profile/engine/engine.js";
import { openEngine } from "../../../src/profile/engine/open-engine.js";
import { storeSql } from "../../../src/store/postgres/store-sql.js";
import { madeGrant } from "../../helpers/grant.js";
import { HAS_LAB, inLab, sayWithoutLab } from "../../helpers/lab.js";
import { HAS_REDIS, startRedis } from "../../helpers/redis-server.js";
import { MISSING_SERVER, type PostgresServer, startPostgres } from "../../store/postgres/postgres-server.js";

sayWithoutLab("a store that iovalkey connects");
const KEY = { kind: "grant", partition: "p", id: "i" } as const;

async function roundTrip(name: PackageName, address: EngineAddress): Promise<string | undefined> {
  const installed = packageFrom(name === "iovalkey" ? inLab("packages.mjs").href : import.meta.url, name);
  if (installed === undefined) throw new Error(`${name} is not installed`);
  const { driver, close } = await connectWith(installed, address);
  try {
    await driver.put(KEY, name, (await driver.get(KEY))?.version);
    return (await driver.get(KEY))?.value;
  } finally {
    await close();
  }
}

describe.skipIf(!HAS_REDIS)("a client package of Redis (needs redis-server)", () => {
  let redis: Awaited<ReturnType<typeof startRedis>>;
  const address = (port: number) => {
    const url = `redis://127.0.0.1:${port}/3`;
    return { url, host: "127.0.0.1", port, database: "3", location: `redis at 127.0.0.1:${port}/3` };
  };
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());

  it.each(["redis", "ioredis", ...(HAS_LAB ? (["iovalkey"] as const) : [])] as const)(
    "%s connects, and fails at once without a server",
    async (name) => {
      expect(await roundTrip(name, address(redis.port))).toBe(name);
      await expect(roundTrip(name, address(1))).rejects.toMatchObject({
        code: "store_unavailable",
        message: "the Redis server at 127.0.0.1:1/3 cannot be used now: ECONNREFUSED",
      });
    },
  );

  it("is refused a refresh before it is sent, if the engine would not store its result", async () => {
    const url = { read: () => `redis://127.0.0.1:${redis.port}/5`, source: "a test" };
    const keys = { read: () => "none", source: "a test" };
    const { store, driver } = openEngine("redis", { url, keys, takeover: "patient", tenant: undefined }, {});
    onTestFinished(() => driver.close());
    await store.save(madeGrant(), undefined);
    await (await store.reserve(madeGrant())).release();
    const admin = await createClient({ url: url.read() }).connect();
    onTestFinished(() => void admin.close());
    await admin.sendCommand(["ACL", "SETUSER", "default", "-hset"]);
    onTestFinished(async () => void (await admin.sendCommand(["ACL", "SETUSER", "default", "+hset"])));
    await expect(store.reserve(madeGrant())).rejects.toMatchObject({ code: "store_failed" });
  });
});

describe.skipIf(MISSING_SERVER !== "")(`a client package of PostgreSQL${MISSING_SERVER}`, () => {
  let server: PostgresServer;
  const address = (host: string) => {
    const url = `postgres://postgres@localhost/postgres?host=${host}`;
    return { url, host, port: 5432, database: "postgres", location: "PostgreSQL" };
  };
  beforeAll(async () => {
    server = await startPostgres();
    const { default: pg } = await import("pg");
    const client = new pg.Client(server.options);
    await client.connect();
    await client.query(storeSql());
    await client.end();
  });
  afterAll(() => server?.close());

  it.each(["pg", "postgres"] as const)("%s connects", async (name) => {
    expect(await roundTrip(name, address(server.options.host))).toBe(name);
  });
});
