import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { CLIENTS } from "./clients.js";
import type { PostgresServer } from "./postgres-server.js";

/** Competes with other processes, in rounds that the test starts. */
export interface RaceJob {
  options: PostgresServer["options"];
  client: keyof typeof CLIENTS;
  /** How many operations each round runs at once. */
  width: number;
  name: string;
}

/** What to do in a round. */
export interface Round {
  do: "create" | "replace" | "recreate" | "remove" | "claim" | "count" | "end";
  nth: number;
}

const job = JSON.parse(process.argv[2] ?? "") as RaceJob;
const { client, close } = CLIENTS[job.client](job.options);
const driver = postgresDriver({ client }, { timeoutMs: 60_000 });
const say = (event: string, more: object = {}) => process.send?.({ event, ...more });

/** Each function is one competitor and resolves to what it won, or to undefined. */
const COMPETITORS: Record<Exclude<Round["do"], "end">, (key: RecordKey, name: string) => Promise<unknown>> = {
  create: (key, name) => driver.put(key, name, undefined),
  replace: async (key, name) => driver.put(key, name, (await read(driver, key)).version),
  // The record has expired when the round begins.
  recreate: (key, name) => driver.put(key, name, undefined),
  remove: async (key) => (await driver.delete(key)) || undefined,
  async claim(key, owner) {
    const answer = await driver.claim(key, { owner, ttlMs: 60_000, note: owner });
    return answer.held ? answer.attempt : undefined;
  },
  /** Adds one to a number, until that succeeds. */
  async count(key) {
    for (;;) {
      const { value, version } = await read(driver, key);
      const won = await driver.put(key, String(Number(value) + 1), version);
      if (won !== undefined) return won;
    }
  },
};

async function read(from: StoreDriver, key: RecordKey) {
  const record = await from.get(key);
  if (!record) throw new Error("no record");
  return record;
}

process.on("message", async (round: Round) => {
  if (round.do === "end") {
    await close();
    process.disconnect();
    return;
  }
  const compete = COMPETITORS[round.do];
  const key: RecordKey = { kind: "grant", partition: "race", id: `${round.do} ${round.nth}` };
  const names = Array.from({ length: job.width }, (_, nth) => `${job.name} ${nth}`);
  const results = await Promise.all(names.map((name) => compete(key, name)));
  say("done", {
    won: names.flatMap((name, nth) => (results[nth] === undefined ? [] : [{ name, result: results[nth] }])),
  });
});

await driver.get({ kind: "grant", partition: "race", id: "-" });
say("started");
