// What a stored token costs, against a read of the same size from the engine by the same client, and with many users.

import { randomUUID } from "node:crypto";
import { AgentClient } from "../dist.mjs";
import { quantile, randomFrom } from "../tools.mjs";
import { inEngines, missingEngine } from "./engines.mjs";
import { openFleet } from "./fleet.mjs";
import { connect, fillStore, openStore } from "./store.mjs";

/** The scenario. */
export const latency = {
  title: "What a stored token costs",
  header: ["p50 in milliseconds", "Redis", "PostgreSQL"],
  unavailable: missingEngine,
  run,
};

const FEW = 10;
const SIZES = { short: { many: 10_000, rounds: 60 }, long: { many: 100_000, rounds: 300 } };
const BATCH = 10;

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const { many, rounds } = SIZES[size];
  const columns = [];
  await inEngines(["redis", "postgres"], async (_, engine) => {
    const times = await measure(engine, { many, rounds, seed });
    const [raw, few, lots] = [times.raw, times.few, times.many].map((each) => quantile(each, 0.5));
    const [first, last] = [times.firstFew, times.firstMany].map((each) => quantile(each, 0.5));
    columns.push([raw, few, few - raw, lots, first, last].map((ms) => ms.toFixed(3)));
    say(
      `${engine.name}: goal few - raw ≤ 0.1: ${(few - raw).toFixed(3)}; many / few ≤ 1.2: ${(lots / few).toFixed(2)}`,
    );
  });
  const names = [
    "a read of the engine",
    `token(), ${FEW} users`,
    "token() beyond the read",
    `token(), ${many.toLocaleString("en")} users`,
    `first call of a process, ${FEW} users`,
    `first call of a process, ${many.toLocaleString("en")} users`,
  ];
  return names.map((name, row) => [name, ...columns.map((column) => column[row])]);
}

async function measure(engine, { many, rounds, seed }) {
  const fleet = await openFleet({ engine, users: 1 });
  const link = await connect(engine.address);
  try {
    const [grant] = await fleet.grants();
    const stores = {};
    for (const [name, users] of Object.entries({ few: FEW, many })) {
      const tenant = `${name}-${randomUUID()}`;
      stores[name] = { tenant, users };
      await fillStore(openStore(link.driver, { tenant }), grant, users);
    }
    const draw = randomFrom(seed, "latency");
    const raw = await rawRead(engine, link);
    const token = Object.fromEntries(
      Object.entries(stores).map(([name, one]) => [name, reader(link, fleet, one, draw)]),
    );
    const times = { raw: [], few: [], many: [], firstFew: [], firstMany: [] };
    // In turn, so that the load of the machine hits all alike.
    for (let round = 0; round < rounds; round++) {
      for (let call = 0; call < BATCH; call++) {
        times.raw.push(await time(raw));
        times.few.push(await time(token.few));
        times.many.push(await time(token.many));
      }
      times.firstFew.push(await time(first(link, fleet, stores.few, draw)));
      times.firstMany.push(await time(first(link, fleet, stores.many, draw)));
    }
    return times;
  } finally {
    await link.close();
    await fleet.close();
  }
}

/** Reads 2.5 kB as the driver does: one command, or one statement. */
async function rawRead(engine, { raw }) {
  if (engine.address.kind === "postgres") return () => raw("SELECT 1");
  await raw(["SET", "raw", "x".repeat(2500)]);
  return () => raw(["GET", "raw"]);
}

/** Calls for the token of a random user, of some that this process has used before. */
function reader(link, fleet, { tenant, users }, draw) {
  const store = openStore(link.driver, { tenant });
  const agents = Array.from({ length: FEW }, () => new AgentClient({ store, profile: `user-${draw.below(users)}` }));
  return () => agents[draw.below(FEW)].token(fleet.server, { login: false });
}

/** A call for a token in a process that has not used the store before. */
function first(link, fleet, { tenant, users }, draw) {
  const store = openStore(link.driver, { tenant });
  const agent = new AgentClient({ store, profile: `user-${draw.below(users)}` });
  return () => agent.token(fleet.server, { login: false });
}

async function time(work) {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
