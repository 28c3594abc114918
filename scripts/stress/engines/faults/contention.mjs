// Statements of others that are in the way: in the pool of the application, and on the rows of the store.
import { until } from "../../invariant.mjs";
import { faultScenario, pause } from "../faults.mjs";

const TRIES = 400;
const WINDOW_MS = 500;
const LOCKED_MS = 15_000;

/** The scenario. */
export const contention = faultScenario({
  title: "Statements of others that are in the way of a refresh",
  lanes: 20,
  kinds: [
    { what: "the application fills the pool for 7 s", users: 4, trial: ({ fleet }) => fill(fleet, 7000) },
    {
      what: "the record of one user is locked",
      short: ["postgres"],
      engines: ["postgres"],
      trial: lock("agentauth_record"),
    },
    { what: "the records of four users are locked", engines: ["postgres"], users: 4, trial: lock("agentauth_record") },
    {
      what: "the leases of four users are locked",
      engines: ["postgres"],
      users: 4,
      trial: lock("agentauth_record_lease"),
    },
    { what: "the table of records is locked", engines: ["postgres"], users: 4, trial: lock() },
    {
      what: "transactions are serializable by default, first calls",
      engines: ["postgres"],
      users: 4,
      prepare: (engine) => engine.command("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'"),
      trial: ({ fleet }) => Promise.all(fleet.crew.map((worker) => worker.ask(fleet.request()))),
    },
  ],
});

/** A process refreshes the tokens of all users: the issuer has the requests. */
async function begin(fleet) {
  const [holder] = fleet.crew;
  fleet.sandbox.faults.add({ kind: "slow-headers", ms: WINDOW_MS, path: "token", times: fleet.profiles.length });
  const own = holder.ask(fleet.request(undefined, { tries: TRIES }));
  await until(() => fleet.ledger.all().length === fleet.profiles.length, "the requests");
  return { holder, own };
}

function rest(fleet) {
  return fleet.crew.slice(1).map((worker) => worker.ask(fleet.request(undefined, { tries: TRIES })));
}

async function fill(fleet, ms) {
  const { holder, own } = await begin(fleet);
  await holder.ask({ fill: ms });
  return Promise.all([own, ...rest(fleet)]);
}

/** Somebody locks every row, or the table, and forgets it for a while. */
function lock(rows) {
  const statement = rows ? `PERFORM FROM ${rows} FOR UPDATE` : "LOCK TABLE agentauth_record IN ACCESS EXCLUSIVE MODE";
  return async ({ fleet, engine }) => {
    const { own } = await begin(fleet);
    const locked = engine.command(`DO $$ BEGIN ${statement}; PERFORM pg_sleep(${LOCKED_MS / 1000}); END $$`);
    await pause(WINDOW_MS / 2);
    const others = rest(fleet);
    await locked;
    return Promise.all([own, ...others]);
  };
}
