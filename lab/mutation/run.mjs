// Chooses mutants, lets StrykerJS run them and prints those that survive: mutate.mjs starts it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { modules } from "../install.mjs";
import { changedLines, draw, keyOf, mutantsOf, readEquivalents, sourceFiles, withoutEquivalents } from "./mutants.mjs";
import { listener } from "./plugin.mjs";
import { allTests, distance } from "./tests.mjs";

/** What real engines run, in tests of processes (see `coverage` in vitest.config.ts): a sample cannot judge it. */
const OF_ENGINES =
  /^src\/(?:store\/(?:redis\/(?:connection|engine|redis-driver|scripts)|postgres\/client)\.ts$|profile\/engine\/)/;
/** `--changed` is a step of CI: what it leaves out is said. */
const CHANGED = { mutants: 60, ms: 165_000 };
/** The least share of killed mutants of a sample, in percent. */
const goalOf = (area) => (area === "api" || area === "cli" ? 80 : 85);
const isKilled = ({ status }) => ["Killed", "Timeout", "RuntimeError"].includes(status);

process.chdir(dirname(dirname(import.meta.dirname)));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    changed: { type: "boolean", default: false },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
  },
});

const areaOf = ({ fileName }) => fileName.split("/")[1].replace(/\.ts$/, "");
const chosen = await chooseMutants();
// The tests of all areas together are more than one worker can run without a mutant.
const runs = values.sample === undefined ? [chosen] : Object.values(Object.groupBy(chosen, areaOf));
let hasFailed = false;
process.once("SIGTERM", stop);
for (const mutants of runs) {
  if (mutants.length > 0) await runStryker(mutants).catch(noteFailure);
}
finish();

async function chooseMutants() {
  const paths = positionals.length === 0 ? ["src"] : positionals;
  const wanted = values.changed ? changedLines(positionals[0]) : new Map(paths.flatMap(linesOf));
  if (wanted === undefined) {
    console.log("NOT RUN: this checkout has no commit to compare with");
    return [];
  }
  const files = [...wanted.keys()].filter((file) => !(values.sample && OF_ENGINES.test(file))).sort();
  const equivalents = readEquivalents(join(import.meta.dirname, "equivalents.txt"));
  // A row that names no mutant any more would end a sample that others draw.
  if (values.changed) withoutEquivalents(await mutantsOf(new Set(equivalents.map(({ file }) => file))), equivalents);
  const listed = equivalents.filter(({ file }) => files.includes(file));
  const mutants = withoutEquivalents(await mutantsOf(files), listed).filter(
    ({ fileName, location: { start } }) => wanted.get(fileName)?.has(start.line + 1) ?? true,
  );
  const size = Number(values.sample ?? (values.changed ? CHANGED.mutants : Number.POSITIVE_INFINITY));
  const seeds = values.seed.split(",");
  const drawn = [...new Set(seeds.flatMap((seed) => draw(mutants, size / seeds.length, seed)))];
  console.log(`${mutants.length} mutants in ${files.length} files, ${drawn.length} of them drawn`);
  return drawn;
}

/** The files of `src/a`, `src/a.ts` or `src/a.ts:10-20`, with the numbers of the lines where some are named. */
function linesOf(text) {
  const [path, from, to = from] = text.split(/:|(?<=:\d+)-/);
  const lines = from && new Set(Array.from({ length: to - from + 1 }, (_, nth) => Number(from) + nth));
  return sourceFiles(path).map((file) => [file, lines || undefined]);
}

/** A sample is judged by all tests of its areas too; a change has no time for those that are far. */
function chooseTests(files) {
  const farthest = values.sample === undefined ? 2 : 4;
  return allTests().filter((test) => files.some((file) => distance(file, test) <= farthest));
}

async function runStryker(mutants) {
  const tests = chooseTests([...new Set(mutants.map(({ fileName }) => fileName))]);
  const folder = mkdtempSync(join(tmpdir(), "agentauth-mutants-"));
  // Programs that tests start must not be coloured by the terminal of this run, nor is dist/ of interest.
  const settings = join(folder, "settings.json");
  Object.assign(process.env, { NO_COLOR: "1", AGENTAUTH_TEST_BUILD: "none", AGENTAUTH_MUTATION: settings });
  const rows = new Map(mutants.map((mutant) => [keyOf(mutant), mutant]));
  const write = (sources) => writeFileSync(settings, JSON.stringify({ tests, chosen: [...rows.keys()], sources }));
  write({});
  const byId = new Map();
  listener.onMutationTestingPlanReady = ({ mutantPlans }) => {
    for (const { mutant } of mutantPlans) byId.set(mutant.id, rows.get(keyOf(mutant)));
    write(Object.fromEntries([...byId].map(([id, mutant]) => [id, mutant?.fileName])));
    console.log(`the tests of ${tests.length} files pass without a mutant`);
  };
  listener.onMutantTested = ({ id, status }) => noteResult(byId.get(id), status);
  const timer = values.changed && setTimeout(stop, CHANGED.ms);
  const runner = "@stryker-mutator/vitest-runner/dist/src/index.js";
  try {
    await new Stryker({
      testRunner: "vitest",
      plugins: [join(modules, runner), join(import.meta.dirname, "plugin.mjs")],
      checkers: ["chosen"],
      reporters: ["listener"],
      coverageAnalysis: "perTest",
      mutate: [...new Set(mutants.map(rangeOf))],
      vitest: { configFile: "lab/mutation/vitest.config.mjs", related: false, pool: "forks" },
      concurrency: Math.max(2, availableParallelism()),
      symlinkNodeModules: true,
      tempDirName: ".mutation",
      cleanTempDir: "always",
      ignorePatterns: [
        "dist",
        "docs/.vitepress",
        "lab/*",
        "!lab/mutation",
        "!lab/packages.mjs",
        "coverage",
        ".vitest-cache",
      ],
      disableTypeChecks: false,
      // The machine may be busy: only what hangs is a time-out.
      timeoutMS: 120_000,
      timeoutFactor: 4,
      dryRunTimeoutMinutes: 60,
      logLevel: "error",
      warnings: false,
    }).runMutationTest();
  } finally {
    clearTimeout(timer);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As Stryker takes it. */
function rangeOf({ fileName, location: { start, end } }) {
  return `${fileName}:${start.line + 1}:${start.column}-${end.line + 1}:${end.column}`;
}

/** @param mutant undefined where it was not chosen */
function noteResult(mutant, status) {
  if (mutant === undefined) return;
  mutant.status = status;
  if (isKilled(mutant)) return;
  const { fileName, from, to, location } = mutant;
  console.log(`\n# ${fileName}\n- ${from}\n+ ${to}\n(line ${location.start.line + 1}, ${status})`);
}

/** The other areas are run all the same. */
function noteFailure(error) {
  hasFailed = true;
  console.error(error);
}

function stop() {
  console.log("\nstopped before the end: npm run mutate -- <file> runs the rest");
  finish();
  process.exit();
}

/** Prints the share of killed mutants of each area. */
function finish() {
  const run = chosen.filter(({ status }) => status !== undefined);
  // What no near test of this process runs may be covered by tests of processes, or by far ones.
  const uncovered = run.filter(({ status }) => status === "NoCoverage").length;
  const isNoticed = (mutant) => isKilled(mutant) || mutant.status === "NoCoverage";
  let isGood = !hasFailed && (values.sample !== undefined || run.every(isNoticed));
  for (const area of [...new Set(run.map(areaOf))].sort()) {
    const all = run.filter((mutant) => areaOf(mutant) === area);
    const percent = (100 * all.filter(isKilled).length) / all.length;
    if (values.sample !== undefined && percent < goalOf(area)) isGood = false;
    console.log(`${area}: ${all.filter(isKilled).length} of ${all.length} killed, ${percent.toFixed(1)} %`);
  }
  const timeouts = run.filter(({ status }) => status === "Timeout").length;
  const left = `${uncovered} in code that these tests do not run, ${chosen.length - run.length} not run`;
  console.log(`${run.filter(isKilled).length} of ${run.length} killed (${timeouts} by time-out), ${left}`);
  process.exitCode = isGood ? 0 : 1;
}
