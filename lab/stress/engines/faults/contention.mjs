// Statements of others that are in the way: in the pool of the application, and on the rows of the store.
import { pause } from "../../tools.mjs";
import { beginRefresh, faultScenario, WINDOW_MS } from "../faults.mjs";

const TRIES = 400;
const LOCKED_MS = 15_000;

const ofPostgres = { engines: ["postgres"], users: 4 };

/** The scenario. */
export const contention = faultScenario({
  title: "Statements of others that are in the way of a refresh",
  lanes: 20,
  kinds: [
    { what: "the application fills the pool for 7 s", users: 4, trial: (arena) => fill(arena, 7000) },
    {
      ...ofPostgres,
      what: "the record of one user is locked",
      short: ["postgres"],
      users: 1,
      trial: lock("agentauth_record"),
    },
    { ...ofPostgres, what: "the records of four users are locked", trial: lock("agentauth_record") },
    { ...ofPostgres, what: "the leases of four users are locked", trial: lock("agentauth_record_lease") },
    { ...ofPostgres, what: "the table of records is locked", trial: lock() },
    {
      ...ofPostgres,
      what: "transactions are serializable by default, first calls",
      prepare: (engine) => engine.command("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'"),
      trial: ({ fleet }) => Promise.all(fleet.ask(1)),
    },
  ],
});

async function fill({ fleet }, ms) {
  const [holder, ...others] = fleet.crew;
  const { own } = await beginRefresh(fleet, holder, TRIES);
  await holder.ask({ fill: ms });
  return Promise.all([own, ...fleet.ask(TRIES, others)]);
}

/** Somebody locks every row, or the table, and forgets it for a while. */
function lock(rows) {
  const statement = rows ? `PERFORM FROM ${rows} FOR UPDATE` : "LOCK TABLE agentauth_record IN ACCESS EXCLUSIVE MODE";
  return async ({ fleet, engine }) => {
    const [holder, ...rest] = fleet.crew;
    const { own } = await beginRefresh(fleet, holder, TRIES);
    const locked = engine.command(`DO $$ BEGIN ${statement}; PERFORM pg_sleep(${LOCKED_MS / 1000}); END $$`);
    await pause(WINDOW_MS / 2);
    const others = fleet.ask(TRIES, rest);
    await locked;
    return Promise.all([own, ...others]);
  };
}
