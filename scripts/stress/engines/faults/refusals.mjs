// An engine that refuses the save: nothing is sent to the issuer then, and once it is mended the login goes on.
import { must } from "../../tools.mjs";
import { faultScenario } from "../faults.mjs";

const TRIES = 20;
const RECORDS = "agentauth_record";

const POSTGRES = [
  ["UPDATE is revoked", `REVOKE UPDATE ON ${RECORDS} FROM app`, `GRANT UPDATE ON ${RECORDS} TO app`],
  [
    "the sequence is revoked",
    `REVOKE ALL ON SEQUENCE ${RECORDS}_version FROM app`,
    `GRANT USAGE ON ${RECORDS}_version TO app`,
  ],
  [
    "a constraint is added",
    `ALTER TABLE ${RECORDS} ADD CONSTRAINT no CHECK (false) NOT VALID`,
    `ALTER TABLE ${RECORDS} DROP CONSTRAINT no`,
  ],
  [
    "a column is renamed",
    `ALTER TABLE ${RECORDS} RENAME tags TO labels`,
    `ALTER TABLE ${RECORDS} RENAME labels TO tags`,
  ],
  [
    "a policy hides the rows",
    `ALTER TABLE ${RECORDS} ENABLE ROW LEVEL SECURITY`,
    `ALTER TABLE ${RECORDS} DISABLE ROW LEVEL SECURITY`,
  ],
].map(([what, spoil, mend], at) => ({
  what,
  short: at === 0 ? ["postgres"] : undefined,
  engines: ["postgres"],
  prepare: withRole,
  trial: refuse(spoil, mend),
}));

const REDIS = [
  ["HSET is forbidden", ["ACL", "SETUSER", "app", "-hset"], ["ACL", "SETUSER", "app", "+hset"]],
  ["ZADD is forbidden", ["ACL", "SETUSER", "app", "-zadd"], ["ACL", "SETUSER", "app", "+zadd"]],
  ["the memory is full", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
].map(([what, spoil, mend], at) => ({
  what,
  short: at === 0 ? ["redis"] : undefined,
  engines: ["redis"],
  prepare: withUser,
  trial: refuse(spoil, mend),
}));

/** The scenario. */
export const refusals = faultScenario({
  title: "Engines that refuse a save",
  lanes: 8,
  kinds: [
    ...POSTGRES,
    ...REDIS,
    { what: "another program uses the key of the index", engines: ["redis"], prepare: withUser, trial: takeIndex },
  ],
});

async function withRole(engine) {
  await engine.command(
    `CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ${RECORDS}, ${RECORDS}_lease TO app;
     GRANT USAGE ON SEQUENCE ${RECORDS}_version TO app`,
  );
  engine.address = { ...engine.address, options: { ...engine.address.options, user: "app" } };
}

async function withUser(engine) {
  await engine.command("ACL", "SETUSER", "app", "on", "nopass", "~*", "&*", "+@all");
  engine.address = { ...engine.address, username: "app" };
}

function refuse(spoil, mend) {
  return ({ fleet, engine }) => {
    const run = (command) => () => engine.command(...[command].flat());
    return refused(fleet, run(spoil), run(mend));
  };
}

async function takeIndex({ fleet, engine }) {
  const [index] = await engine.command("KEYS", "aa:*:i:grant");
  const spoil = async () => {
    await engine.command("RENAME", index, "kept");
    await engine.command("SET", index, "of another program");
  };
  return refused(fleet, spoil, () => engine.command("RENAME", "kept", index));
}

async function refused(fleet, spoil, mend) {
  await spoil();
  const attempts = await Promise.all(fleet.ask(1));
  for (const { errors } of attempts)
    for (const { code, message } of Object.values(errors)) must(/^(store_|login_required)/.test(code), message);
  must(
    attempts.every(({ errors }) => Object.keys(errors).length > 0),
    "a token was returned",
  );
  must(fleet.ledger.all().length === 0, "a refresh token was sent to the issuer");
  await mend();
  return Promise.all(fleet.ask(TRIES));
}
