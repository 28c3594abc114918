// Stress test of refreshes with real processes, files and sockets, against an issuer that accepts every refresh token
// once: node scripts/soak.mjs [--long] [--only <scenario>] [--seed <n>] [--write]
// Exits with 1 at the first broken invariant.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { claims } from "./soak/claims.mjs";
import { faults } from "./soak/faults.mjs";
import { Broken } from "./soak/invariant.mjs";
import { checkIssuer } from "./soak/issuer.mjs";
import { kills } from "./soak/kills.mjs";
import { namespaces } from "./soak/namespaces.mjs";
import { race } from "./soak/race.mjs";
import { describeRun, section, writeSections } from "./soak/report.mjs";
import { stops } from "./soak/stops.mjs";

// Scenarios that need the whole machine run alone; those that mostly wait run concurrently.
const GROUPS = [{ race }, { faults }, { kills }, { stops, claims, namespaces }];
const SCENARIOS = GROUPS.flatMap(Object.keys);
const PAGE = fileURLToPath(new URL("../docs/reliability.md", import.meta.url));

const { values: flags } = parseArgs({
  options: {
    long: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    write: { type: "boolean", default: false },
  },
});
const unknown = flags.only.find((name) => !SCENARIOS.includes(name));
if (unknown !== undefined) fail(`no scenario ${JSON.stringify(unknown)}; there are ${SCENARIOS.join(", ")}`);
const seed = Number(flags.seed);
if (!Number.isSafeInteger(seed) || seed < 0) fail("--seed takes a whole number");
if (flags.write && !flags.long) fail("--write requires --long");

const size = flags.long ? "long" : "short";
const about = describeRun(seed);
console.log(`${size} run, --seed ${seed}; ${about}\n`);
try {
  await checkIssuer();
  const sections = new Map();
  for (const group of GROUPS) {
    const chosen = Object.entries(group).filter(([name]) => flags.only.length === 0 || flags.only.includes(name));
    // All scenarios finish, so that a failure of one leaves no process behind.
    const runs = chosen.map(async ([name, scenario]) => sections.set(name, await runOne(name, scenario)));
    const ended = await Promise.allSettled(runs);
    const broken = ended.find(({ status }) => status === "rejected");
    if (broken) throw broken.reason;
  }
  if (flags.write) writeSections(PAGE, sections);
} catch (error) {
  fail(
    `BROKEN: ${error instanceof Broken ? error.message : error.stack}\nto repeat: node scripts/soak.mjs --seed ${seed}`,
  );
}

async function runOne(name, scenario) {
  const reason = scenario.unavailable?.();
  if (reason !== undefined) {
    console.log(`!!! ${name} was NOT run: ${reason}\n`);
    return section(scenario, undefined, `Not run: ${reason}.`);
  }
  const started = Date.now();
  const say = (text) => console.log(`   ${name}: ${text}`);
  const rows = await scenario.run({ size, seed, say }).catch((error) => {
    say(`BROKEN: ${error.message}`);
    throw error;
  });
  const text = section(scenario, rows, `${about}, ${Math.round((Date.now() - started) / 1000)} s.`);
  console.log(`${text}\n`);
  return text;
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
