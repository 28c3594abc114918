// What was stored is taken back: by a crash of a server that writes later, by a failover, by an operator.

import { randomUUID } from "node:crypto";
import { AgentClient } from "../../dist.mjs";
import { must } from "../../tools.mjs";
import { faultScenario } from "../faults.mjs";
import { startPostgres } from "../postgres.mjs";

const TRIES = 60;
const LATE_WRITES = "ALTER SYSTEM SET wal_writer_delay = '10s'";

const ofPostgres = { engines: ["postgres"], users: 4 };

/** The scenario. */
export const rollbacks = faultScenario({
  title: "Writes that are taken back",
  lanes: 8,
  kinds: [
    {
      ...ofPostgres,
      what: "killed with its holder, synchronous_commit is off",
      prepare: async (engine) => {
        await engine.command("ALTER DATABASE postgres SET synchronous_commit = off");
        await engine.command(LATE_WRITES);
        await engine.command("SELECT pg_reload_conf()");
      },
      trial: killBoth,
    },
    { what: "a record is put back", short: ["redis", "postgres"], users: 2, trial: putBack },
    { what: "a login that was logged out is put back", users: 2, trial: putLogoutBack },
    { ...ofPostgres, what: "the tables are put back, processes live", trial: restoreAll },
    { ...ofPostgres, what: "a standby that lags is promoted; who refreshed asks first", trial: promote(false) },
    {
      ...ofPostgres,
      what: "a standby that lags is promoted; others ask first",
      grace: 30,
      tolerates: "an asynchronous standby",
      trial: promote(true),
    },
  ],
});

const all = (fleet, workers) => Promise.all(fleet.ask(TRIES, workers));

async function killBoth({ fleet, engine }) {
  const holder = fleet.crew.shift();
  const [own] = await all(fleet, [holder]);
  await Promise.all([engine.kill(), holder.kill()]);
  await engine.restart();
  fleet.expire();
  const others = await all(fleet);
  fleet.crew.push(await fleet.worker());
  return [own, ...others];
}

/** How the records of an engine are kept, and put back as they were. */
async function keep(engine) {
  if (engine.address.kind === "postgres") {
    const kept = `kept_${randomUUID().replaceAll("-", "")}`;
    await engine.command(`CREATE TABLE ${kept} AS TABLE agentauth_record`);
    return () => engine.command(`DELETE FROM agentauth_record; INSERT INTO agentauth_record TABLE ${kept}`);
  }
  const keys = await engine.command("KEYS", "aa:*:r:grant:*");
  const fields = ["v", "d", "t"];
  const values = await Promise.all(keys.map((key) => engine.command("HMGET", key, ...fields)));
  const put = (key, at) => engine.command("HSET", key, ...fields.flatMap((field, place) => [field, values[at][place]]));
  return () => Promise.all(keys.map(put));
}

async function putBack({ fleet, engine }) {
  const restore = await keep(engine);
  const first = await all(fleet);
  const undo = await keep(engine);
  await restore();
  await refusedByNew(fleet);
  await undo();
  fleet.expire();
  return [...first, ...(await all(fleet))];
}

/** A process that knows of nothing sends nothing. */
async function refusedByNew(fleet, profiles = fleet.profiles) {
  const sent = fleet.ledger.all().length;
  fleet.expire();
  const worker = await fleet.worker();
  const { errors, tokens } = await worker.ask(fleet.request(profiles));
  await worker.end();
  const codes = profiles.map((profile) => errors[profile]?.code);
  must(
    codes.every((code) => code === "record_rolled_back"),
    () => `not refused: ${JSON.stringify({ errors, tokens })}`,
  );
  must(fleet.ledger.all().length === sent, "a refresh token was sent to the issuer");
}

async function putLogoutBack({ fleet, engine }) {
  const [profile] = fleet.profiles;
  const restore = await keep(engine);
  await new AgentClient({ store: fleet.store, profile }).disconnect(fleet.server);
  await restore();
  await refusedByNew(fleet, [profile]);
  await fleet.loginOf(profile);
  return all(fleet);
}

async function restoreAll({ fleet, engine }) {
  await engine.command("DROP TABLE IF EXISTS kept, kept_lease");
  await engine.command(
    "CREATE TABLE kept AS TABLE agentauth_record; CREATE TABLE kept_lease AS TABLE agentauth_record_lease",
  );
  const first = await all(fleet);
  await engine.command(
    `BEGIN; DELETE FROM agentauth_record; INSERT INTO agentauth_record TABLE kept;
     DELETE FROM agentauth_record_lease; INSERT INTO agentauth_record_lease TABLE kept_lease; COMMIT`,
  );
  fleet.expire();
  return [...first, ...(await all(fleet))];
}

/** The standby receives nothing any more, one process refreshes, and the primary is killed. */
function promote(areOthersFirst) {
  return async (arena) => {
    const { fleet, engine: primary } = arena;
    const standby = await startPostgres({ standbyOf: primary });
    await standby.synced(primary);
    await standby.command("ALTER SYSTEM SET primary_conninfo = ''");
    await standby.command("SELECT pg_reload_conf()");
    const [refresher, ...others] = fleet.crew;
    const first = await all(fleet, [refresher]);
    await primary.close();
    await standby.promote();
    arena.engine = standby;
    await fleet.moveTo(standby);
    const turns = areOthersFirst ? [others, [refresher]] : [[refresher], others];
    for (const workers of turns) first.push(...(await all(fleet, workers)));
    return first;
  };
}
