// Runs the scenarios that the command line chooses, and reports them.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { checkIssuer } from "./issuer.mjs";
import { Broken } from "./tools.mjs";

/**
 * Exits with 1 at the first broken invariant.
 *
 * @param options.script the name of the script, for messages
 * @param options.groups scenarios by name; those of one group run concurrently
 * @param options.optional the names of scenarios that only run if they are named
 * @param options.page the path of the page that `--write` changes
 * @param options.mark what the mark of a scenario on the page begins with
 * @param options.needsAll whether a scenario that cannot be run is a failure
 * @param options.writesShort whether `--write` accepts a short run
 */
export async function runScenarios(options) {
  const { script, groups, optional = [], page, mark = "", needsAll = false, writesShort = false } = options;
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

  --long    the run that the page shows; without it a short one
  --only    one scenario, perhaps several times: ${names.join(", ")}
  --each    the number of trials of each row, where a scenario has rows of trials
  --seed    repeats the random choices of an earlier run
  --resume  keeps what is finished in a file, and goes on from there; needs --seed
  --write   writes the tables into ${basename(page)}`);
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
    const sections = new Map();
    for (const group of groups) {
      const chosen = Object.entries(group).filter(([name]) => isChosen(name));
      // All scenarios finish, so that a failure of one leaves no process behind.
      const runs = chosen.map(async ([name, scenario]) =>
        sections.set(`${mark}${name}`, await finished(name, () => runOne(name, scenario, run))),
      );
      const ended = await Promise.allSettled(runs);
      const broken = ended.find(({ status }) => status === "rejected");
      if (broken) throw broken.reason;
    }
    if (flags.write) writeSections(page, sections);
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
    return section(scenario, undefined, `Not run: ${reason}.`);
  }
  const started = Date.now();
  const say = (text) => console.log(`   ${name}: ${text}`);
  const rows = await scenario.run({ size, seed, each, isNamed, say }).catch((error) => {
    say(`BROKEN: ${error.message}`);
    throw error;
  });
  const text = section(scenario, rows, `${about}, ${Math.round((Date.now() - started) / 1000)} s.`);
  console.log(`${text}\n`);
  return text;
}

/** Keeps the text of each scenario in a file, and takes it from there if an earlier run has finished it. */
function finishedIn(file, run) {
  if (file === undefined) return (_, work) => work();
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").filter(Boolean).map(JSON.parse) : [];
  return async (name, work) => {
    const earlier = lines.find((line) => line.run === run && line.name === name);
    if (earlier) {
      console.log(`   ${name}: finished by an earlier run\n\n${earlier.text}\n`);
      return earlier.text;
    }
    const text = await work();
    appendFileSync(file, `${JSON.stringify({ run, name, text })}\n`);
    return text;
  };
}

/** Date, machine and seed of a run. */
function describeRun(seed) {
  const date = new Date().toISOString().slice(0, 10);
  return `${date}, ${process.platform}, ${availableParallelism()} cores, Node ${process.versions.node}, seed ${seed}`;
}

/** The text of a scenario: its title, its table, and what the figures were measured on. */
function section({ title, header }, rows, about) {
  const table = rows === undefined ? [] : [markdownTable(header, rows)];
  return [`### ${title}`, ...table, about].join("\n\n");
}

/** Writes each section between its marks; other sections stay. */
function writeSections(path, sections) {
  let page = readFileSync(path, "utf8");
  for (const [name, text] of sections) {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const [start, end] = [page.indexOf(open), page.indexOf(close)];
    if (start < 0 || end < start) throw new Error(`${path} has no marks for ${name}`);
    page = `${page.slice(0, start + open.length)}\n${text}\n${page.slice(end)}`;
  }
  writeFileSync(path, page);
}

/** A table with a header; the first column is text, the others are numbers. */
function markdownTable(header, rows) {
  const cells = [header, ...rows].map((row) =>
    row.map((cell) => (typeof cell === "number" ? cell.toLocaleString("en") : cell)),
  );
  const widths = header.map((_, column) => Math.max(3, ...cells.map((row) => row[column].length)));
  const line = (row) =>
    `| ${row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(" | ")} |`;
  const rule = widths.map((width, at) => (at === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(cells[0]), line(rule), ...cells.slice(1).map(line)].join("\n");
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
