import { afterAll, beforeAll, describe, it } from "vitest";
import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { redisDriver } from "../../../src/store/redis/redis-driver.js";
import { jobProcesses } from "../../helpers/child.js";
import { sayWithoutLab } from "../../helpers/lab.js";
import { HAS_REDIS, type RedisServer, startRedis } from "../../helpers/redis-server.js";
import { driverContract } from "../driver-contract/driver-contract.js";
import { CLIENTS } from "./clients.js";

const TIMEOUT_MS = 2000;
const elsewhere = jobProcesses(new URL("job-driver.ts", import.meta.url));
sayWithoutLab("the Redis driver with ioredis 5 and iovalkey");
const missing = HAS_REDIS ? "" : " (left out: redis-server is not installed)";

describe.skipIf(!HAS_REDIS).each(Object.entries(CLIENTS))(`the Redis driver with %s${missing}`, (name, connect) => {
  const closers = new Map<StoreDriver, () => unknown>();
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    // The contract does not close the drivers of broken engines.
    for (const close of closers.values()) await close();
    await server.close();
  });

  const open = async ({ port } = server) => {
    const { client, close } = await connect(port);
    const driver = redisDriver({ client }, { timeoutMs: TIMEOUT_MS });
    closers.set(driver, close);
    return driver;
  };

  driverContract({
    test: it,
    open,
    close: (driver) => {
      closers.get(driver)?.();
      closers.delete(driver);
    },
    openElsewhere: (job) => elsewhere({ client: name, port: server.port, job }),
    kill: () => server.kill("SIGKILL"),
    restart: () => server.restart(),
    broken: {
      "was stopped": async () => {
        const other = await startRedis();
        const driver = await open(other);
        const close = closers.get(driver);
        closers.set(driver, () => Promise.all([close?.(), other.close()]));
        await other.kill("SIGSTOP");
        return driver;
      },
    },
    timeoutMs: TIMEOUT_MS,
  });
});
