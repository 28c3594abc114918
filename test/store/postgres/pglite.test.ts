import { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { storeSql } from "../../../src/store/postgres/store-sql.js";
import { driverContract } from "../driver-contract/driver-contract.js";

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

  it("returns no more of a value than is needed", async () => {
    const driver = postgresDriver({ client });
    const key = { kind: "grant", partition: "long", id: "i" } as const;
    await driver.put(key, "0123456789", undefined);
    const scan = async (valueLength?: number) => {
      const { items } = await driver.scan({ kind: "grant", partition: "long" }, { limit: 1, valueLength });
      return items[0]?.value;
    };
    expect(await scan(4)).toBe("0123");
    expect(await scan()).toBe("0123456789");
  });

  it("runs the SQL again without a change", async () => {
    const driver = postgresDriver({ client });
    const key = { kind: "grant", partition: "again", id: "i" } as const;
    await driver.put(key, "there", undefined);
    await client.exec(storeSql());
    expect((await driver.get(key))?.value).toBe("there");
  });
});
