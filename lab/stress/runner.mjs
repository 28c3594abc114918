// Runs the scenarios that the command line chooses, and reports them.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { checkIssuer } from "./issuer.mjs";
import { resultText, storeResults } from "./results.mjs";
import { Broken } from "./tools.mjs";

/**
 * Exits with 1 at the first broken invariant.
 *
 * @param options.script the name of the script, for messages
 * @param options.groups scenarios by name; those of one group run concurrently
 * @param options.optional the names of scenarios that only run if they are named
 * @param options.mark what the name of a scenario in results.json begins with
 * @param options.needsAll whether a scenario that cannot be run is a failure
 * @param options.writesShort whether `--write` accepts a short run
 */
export async function runScenarios(options) {
  const { script, groups, optional = [], mark = "", needsAll = false, writesShort = false } = options;
  const names = groups.flatMap(Object.keys);
  const { values: flags } = parseArgs({
    options: {
      each: { type: "string" },
      help: { type: "boolean", default: false },
      long: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] },
      resume: { type: "string" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      write: { type: "boolean", default: false },
    },
  });
  if (flags.help) {
    console.log(`npm run ${script} -- [--long] [--only <scenario>]… [--each <n>] [--seed <n>] [--resume <file>] [--write]

  --long    the run that the site shows; without it a short one
  --only    one scenario, perhaps several times: ${names.join(", ")}
  --each    the number of trials of each row, where a scenario has rows of trials
  --seed    repeats the random choices of an earlier run
  --resume  keeps what is finished in a file, and goes on from there; needs --seed
  --write   stores the results for the site`);
    return;
  }
  // A random seed would repeat nothing.
  if (flags.resume !== undefined && !process.argv.includes("--seed")) fail("--resume requires --seed");
  const unknown = flags.only.find((name) => !names.includes(name));
  if (unknown !== undefined) fail(`no scenario ${JSON.stringify(unknown)}; there are ${names.join(", ")}`);
  const seed = Number(flags.seed);
  if (!Number.isSafeInteger(seed) || seed < 0) fail("--seed takes a whole number");
  if (flags.write && !flags.long && !writesShort) fail("--write requires --long");

  const each = flags.each === undefined ? undefined : Number(flags.each);
  if (each !== undefined && !(Number.isInteger(each) && each > 0)) fail("--each takes a whole number above 0");
  const isChosen = (name) => (flags.only.length === 0 ? !optional.includes(name) : flags.only.includes(name));
  const size = flags.long ? "long" : "short";
  const about = describeRun(seed);
  const length = each === undefined ? `${size} run` : `${each} of each row`;
  const run = {
    about: writesShort ? `${length}, ${about}` : about,
    size,
    seed,
    each,
    isNamed: flags.only.length > 0,
    needsAll,
  };
  const finished = finishedIn(flags.resume, `${script} ${size} ${seed}`);
  console.log(`${length}, --seed ${seed}; ${about}\n`);
  try {
    await checkIssuer();
    const results = new Map();
    for (const group of groups) {
      const chosen = Object.entries(group).filter(([name]) => isChosen(name));
      // All scenarios finish, so that a failure of one leaves no process behind.
      const runs = chosen.map(async ([name, scenario]) =>
        results.set(`${mark}${name}`, await finished(name, () => runOne(name, scenario, run))),
      );
      const ended = await Promise.allSettled(runs);
      const broken = ended.find(({ status }) => status === "rejected");
      if (broken) throw broken.reason;
    }
    if (flags.write) storeResults(results);
  } catch (error) {
    const what = error instanceof Broken ? error.message : error.stack;
    fail(`BROKEN: ${what}\nto repeat: node scripts/${script}.mjs --seed ${seed}`);
  }
}

async function runOne(name, scenario, { about, size, seed, each, isNamed, needsAll }) {
  const reason = scenario.unavailable?.();
  if (reason !== undefined && needsAll) throw new Broken(`${name} cannot be run: ${reason}`);
  if (reason !== undefined) {
    console.log(`!!! ${name} was NOT run: ${reason}\n`);
    return { title: scenario.title, about: `Not run: ${reason}.`, rows: [] };
  }
  const started = Date.now();
  const say = (text) => console.log(`   ${name}: ${text}`);
  const rows = await scenario.run({ size, seed, each, isNamed, say }).catch((error) => {
    say(`BROKEN: ${error.message}`);
    throw error;
  });
  const result = {
    title: scenario.title,
    about: `${about}, ${Math.round((Date.now() - started) / 1000)} s.`,
    rows: [scenario.header, ...rows].map((row) =>
      row.map((cell) => (typeof cell === "number" ? cell.toLocaleString("en") : cell)),
    ),
  };
  console.log(`${resultText(result)}\n`);
  return result;
}

/** Keeps the result of each scenario in a file, and takes it from there if an earlier run has finished it. */
function finishedIn(file, run) {
  if (file === undefined) return (_, work) => work();
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").filter(Boolean).map(JSON.parse) : [];
  return async (name, work) => {
    const earlier = lines.find((line) => line.run === run && line.name === name);
    if (earlier) {
      console.log(`   ${name}: finished by an earlier run\n\n${resultText(earlier.result)}\n`);
      return earlier.result;
    }
    const result = await work();
    appendFileSync(file, `${JSON.stringify({ run, name, result })}\n`);
    return result;
  };
}

/** Date, machine and seed of a run. */
function describeRun(seed) {
  const date = new Date().toISOString().slice(0, 10);
  return `${date}, ${process.platform}, ${availableParallelism()} cores, Node ${process.versions.node}, seed ${seed}`;
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
