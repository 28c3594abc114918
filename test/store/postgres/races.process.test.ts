import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { storeSql } from "../../../src/store/postgres/store-sql.js";
import { type Child, compile, startChild } from "../../helpers/child.js";
import { CLIENTS, type TestClient } from "./clients.js";
import { migrate } from "./migrate.js";
import { MISSING_SERVER, type PostgresServer, startPostgres } from "./postgres-server.js";
import type { RaceJob, Round } from "./race-driver.js";

const DRIVER = new URL("race-driver.ts", import.meta.url);
const PROCESSES = 4;
const WIDTH = 13;
const ROUNDS = 20;

interface Won {
  readonly name: string;
  readonly result: unknown;
}

describe.skipIf(MISSING_SERVER)(`52 operations at once from ${PROCESSES} processes${MISSING_SERVER}`, () => {
  let server: PostgresServer;
  let own: TestClient;
  let driver: StoreDriver;

  beforeAll(async () => {
    server = await startPostgres();
    await migrate(server.options, storeSql());
    own = CLIENTS.pg(server.options);
    driver = postgresDriver({ client: own.client }, { timeoutMs: 60_000 });
  });
  afterAll(async () => {
    await own?.close();
    await server?.close();
  });

  async function racers(): Promise<Child[]> {
    const path = await compile(DRIVER);
    const children = Array.from({ length: PROCESSES }, (_, nth) => {
      const client = nth % 2 === 0 ? "pg" : "postgres";
      const job: RaceJob = { options: server.options, client, width: WIDTH, name: `racer ${nth}` };
      return startChild(path, job);
    });
    await Promise.all(children.map((child) => child.hears("started")));
    return children;
  }

  async function race(children: readonly Child[], round: Round): Promise<Won[]> {
    for (const child of children) child.send(round);
    const ends = await Promise.all(children.map((child) => child.hears("done")));
    return ends.flatMap(({ won }) => won as Won[]);
  }

  const keyOf = (round: Round): RecordKey => ({ kind: "grant", partition: "race", id: `${round.do} ${round.nth}` });

  it.each(["create", "replace", "recreate"] as const)("%s a record once", async (what) => {
    const children = await racers();
    for (let nth = 0; nth < ROUNDS; nth++) {
      const round = { do: what, nth };
      const before = what === "replace" ? { expiresInMs: undefined } : { expiresInMs: 1 };
      if (what !== "create") await driver.put(keyOf(round), "before", undefined, before);
      const won = await race(children, round);
      // A competitor that reads after another one has won may replace that one's text.
      if (what !== "replace") expect(won).toHaveLength(1);
      const stored = await driver.get(keyOf(round));
      const last = won.reduce((one, other) => (Number(one.result) > Number(other.result) ? one : other));
      expect(stored).toMatchObject({ version: last.result, value: last.name });
    }
  });

  it("remove a record once", async () => {
    const children = await racers();
    for (let nth = 0; nth < ROUNDS; nth++) {
      const round = { do: "remove", nth } as const;
      await driver.put(keyOf(round), "there", undefined);
      expect(await race(children, round)).toHaveLength(1);
    }
  });

  it("lose no step of a count", async () => {
    const children = await racers();
    const round = { do: "count", nth: 0 } as const;
    await driver.put(keyOf(round), "0", undefined);
    const won = [...(await race(children, round)), ...(await race(children, round))];
    expect((await driver.get(keyOf(round)))?.value).toBe(String(2 * PROCESSES * WIDTH));
    expect(new Set(won.map(({ result }) => result)).size).toBe(2 * PROCESSES * WIDTH);
  });

  it("take a lease once, each time with a higher number and the trace of the one before", async () => {
    const children = await racers();
    const round = { do: "claim", nth: 0 } as const;
    let attempt = 0;
    let before: Won | undefined;
    for (let nth = 0; nth < ROUNDS; nth++) {
      const won = await race(children, round);
      expect(won).toHaveLength(1);
      const [holder] = won as [Won];
      expect(holder.result).toBeGreaterThan(attempt);
      attempt = Number(holder.result);
      const busy = await driver.claim(keyOf(round), { owner: "late", ttlMs: 1000, note: "" });
      expect(busy).toMatchObject({ held: false, by: { attempt, owner: holder.name, note: holder.name } });
      // In every other round nothing is left of the one before.
      const note = nth % 2 === 0 ? "ended" : undefined;
      await driver.release(keyOf(round), { owner: holder.name, note });
      before = holder;
      if (nth === ROUNDS - 2) break;
    }
    const last = await driver.claim(keyOf(round), { owner: "last", ttlMs: 1000, note: "" });
    expect(last).toMatchObject({ held: true, previous: { attempt, owner: before?.name, note: "ended" } });
  });
});
