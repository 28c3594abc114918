import { execFile, spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Cluster as IoRedisCluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { redisDriver } from "../../../src/store/redis/redis-driver.js";
import { HAS_REDIS, type RedisServer, startRedis } from "../../helpers/redis-server.js";
import { driverContract } from "../driver-contract/driver-contract.js";
import { connectRedis, type OpenClient } from "./clients.js";

const HAS_CLUSTER = HAS_REDIS && spawnSync("redis-cli", ["--version"]).status === 0;
const missing = HAS_CLUSTER ? "" : " (left out: redis-server or redis-cli is not installed)";

const CLIENTS: Readonly<Record<string, (ports: readonly number[]) => Promise<OpenClient>>> = {
  "redis 6": async (ports) => {
    const client = createCluster({ rootNodes: ports.map((port) => ({ socket: { host: "127.0.0.1", port } })) });
    client.on("error", () => {});
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "ioredis 6": async (ports) => {
    // The driver must read from primaries although the application prefers replicas.
    const client = new IoRedisCluster([...ports.map((port) => ({ host: "127.0.0.1", port }))], { scaleReads: "slave" });
    client.on("error", () => {});
    return { client, close: () => client.disconnect() };
  },
};

const redisCli = async (args: string[]) => (await promisify(execFile)("redis-cli", args)).stdout;

describe.skipIf(!HAS_CLUSTER)(`a cluster of three Redis servers${missing}`, () => {
  let servers: RedisServer[] = [];
  const ports = () => servers.map(({ port }) => port);

  beforeAll(async () => {
    servers = await Promise.all([1, 2, 3].map(() => startRedis(["--cluster-enabled", "yes"])));
    const nodes = ports().map((port) => `127.0.0.1:${port}`);
    await redisCli(["--cluster", "create", ...nodes, "--cluster-yes"]);
    // A node takes no commands before it knows that the others do.
    for (const port of ports()) {
      const isReady = async () =>
        (await redisCli(["-p", String(port), "cluster", "info"])).includes("cluster_state:ok");
      while (!(await isReady())) await sleep(50);
    }
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
  });

  describe.each(Object.entries(CLIENTS))("with the cluster client of %s", (_name, connect) => {
    const closers = new Map<StoreDriver, () => void>();
    const open = async () => {
      const { client, close } = await connect(ports());
      const driver = redisDriver({ client });
      closers.set(driver, close);
      return driver;
    };
    const close = (driver: StoreDriver) => closers.get(driver)?.();

    driverContract({ test: it, open, close, without: ["watch"] });

    it("reports that no server loses what it acknowledged", async () => {
      const driver = await open();
      expect(await driver.health?.()).toMatchObject({ risks: [], facts: { cluster: "on", appendfsync: "always" } });
      close(driver);
    });

    it("spreads partitions over all servers, and finds each", async () => {
      const driver = await open();
      const partitions = Array.from({ length: 40 }, (_, index) => `spread-${index}`);
      for (const partition of partitions)
        await driver.put({ kind: "binding", partition, id: "one" }, "text", undefined);
      const found = new Set<string>();
      let cursor: string | undefined;
      do {
        const page = await driver.scan({ kind: "binding" }, { limit: 7, cursor });
        for (const { key } of page.items) found.add(key.partition);
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect([...found].filter((name) => name.startsWith("spread-")).sort()).toEqual([...partitions].sort());
      for (const partition of partitions) await driver.delete({ kind: "binding", partition, id: "one" });
      close(driver);
    });
  });

  it("refuses a client of one server, and names the right one", async () => {
    const { client, close } = await connectRedis(ports()[0] ?? 0);
    const driver = redisDriver({ client });
    const reads = Array.from({ length: 20 }, (_, index) =>
      driver.get({ kind: "grant", partition: `p${index}`, id: "one" }).then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    const errors = (await Promise.all(reads)).filter((error) => error !== undefined);
    close();
    expect(errors).not.toHaveLength(0);
    for (const error of errors) {
      expect(error).toMatchObject({ code: "store_failed", hint: expect.stringContaining("cluster client") });
    }
  });
});
