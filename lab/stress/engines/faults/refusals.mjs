// An engine that refuses the save: nothing is sent to the issuer then, and once it is mended the login goes on.
import { must } from "../../tools.mjs";
import { faultScenario } from "../faults.mjs";

const TRIES = 20;
const RECORDS = "agentauth_record";
const SEQUENCE = `${RECORDS}_version`;

const alter = (change) => `ALTER TABLE ${RECORDS} ${change}`;
const user = (right) => ["ACL", "SETUSER", "app", right];
const memory = (bytes) => ["CONFIG", "SET", "maxmemory", bytes];

/** How an engine is spoiled, and mended again. The first is that of a short run. */
const POSTGRES = [
  ["UPDATE is revoked", `REVOKE UPDATE ON ${RECORDS} FROM app`, `GRANT UPDATE ON ${RECORDS} TO app`],
  ["the sequence is revoked", `REVOKE ALL ON SEQUENCE ${SEQUENCE} FROM app`, `GRANT USAGE ON ${SEQUENCE} TO app`],
  ["a constraint is added", alter("ADD CONSTRAINT no CHECK (false) NOT VALID"), alter("DROP CONSTRAINT no")],
  ["a column is renamed", alter("RENAME tags TO labels"), alter("RENAME labels TO tags")],
  ["a policy hides the rows", alter("ENABLE ROW LEVEL SECURITY"), alter("DISABLE ROW LEVEL SECURITY")],
];
const REDIS = [
  ["HSET is forbidden", user("-hset"), user("+hset")],
  ["ZADD is forbidden", user("-zadd"), user("+zadd")],
  ["the memory is full", memory("1"), memory("0")],
];

function kindsOf(engine, prepare, rows) {
  const engines = [engine];
  return rows.map(([what, spoil, mend], at) => {
    return { what, short: at === 0 ? engines : undefined, engines, prepare, trial: refuse(spoil, mend) };
  });
}

/** The scenario. */
export const refusals = faultScenario({
  title: "Engines that refuse a save",
  lanes: 8,
  kinds: [
    ...kindsOf("postgres", withRole, POSTGRES),
    ...kindsOf("redis", withUser, REDIS),
    { what: "another program uses the key of the index", engines: ["redis"], prepare: withUser, trial: takeIndex },
  ],
});

async function withRole(engine) {
  await engine.command(
    `CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ${RECORDS}, ${RECORDS}_lease TO app;
     GRANT USAGE ON SEQUENCE ${SEQUENCE} TO app`,
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
