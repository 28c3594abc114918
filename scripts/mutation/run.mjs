// Chooses mutants, lets StrykerJS run them and prints those that survive: scripts/mutate.mjs starts it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import {
  changedLines,
  checkEquivalents,
  draw,
  isOfEngines,
  keyOf,
  mutantsOf,
  sourceFiles,
  withoutEquivalents,
} from "./mutants.mjs";
import { listener } from "./plugin.mjs";
import { allTests, distance } from "./tests.mjs";

/** `--changed` is a step of CI: what it leaves out is said. */
const CHANGED = { mutants: 60, ms: 165_000 };
/** The least share of killed mutants of a sample, in percent. */
const goalOf = (area) => (area === "api" || area === "cli" ? 80 : 85);
const EQUIVALENTS = join(import.meta.dirname, "equivalents.txt");
const KILLED = ["Killed", "Timeout", "RuntimeError"];

const root = dirname(dirname(import.meta.dirname));
process.chdir(root);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    changed: { type: "boolean", default: false },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
  },
});

const chosen = await chooseMutants();
const rows = new Map(chosen.map((mutant) => [keyOf(root, mutant), mutant]));
if (chosen.length > 0) await runStryker(chooseTests([...new Set(chosen.map(({ fileName }) => fileName))]));
finish();

async function chooseMutants() {
  const paths = values.changed || positionals.length === 0 ? ["src"] : positionals;
  const asked = values.changed ? changedLines(root, positionals[0]) : new Map(paths.flatMap(linesOf));
  if (asked === undefined) {
    console.log("NOT RUN: this checkout has no commit to compare with");
    return [];
  }
  const files = [...asked.keys()].filter((file) => !(values.sample && isOfEngines(file))).sort();
  const all = await mutantsOf(root, files);
  // A row that names no mutant any more would end a sample that others draw.
  if (values.changed) await checkEquivalents(root, EQUIVALENTS);
  const isAsked = ({ fileName, location: { start } }) => asked.get(fileName)?.has(start.line + 1) ?? true;
  const mutants = withoutEquivalents(EQUIVALENTS, files, all).filter(isAsked);
  const size = Number(values.sample ?? (values.changed ? CHANGED.mutants : Number.POSITIVE_INFINITY));
  const drawn = draw(mutants, size, Number(values.seed));
  console.log(`${mutants.length} mutants in ${files.length} files, ${drawn.length} of them drawn`);
  return drawn;
}

/** The files of `src/a`, `src/a.ts` or `src/a.ts:10-20`, with the numbers of the lines where some are named. */
function linesOf(text) {
  const [path, from, to = from] = text.split(/:|(?<=:\d+)-/);
  const lines = from && new Set(Array.from({ length: to - from + 1 }, (_, nth) => Number(from) + nth));
  return sourceFiles(root, path).map((file) => [file, lines || undefined]);
}

/** A sample is judged by all tests of its areas too; a change has no time for those that are far. */
function chooseTests(files) {
  const farthest = values.sample === undefined ? 2 : 4;
  return allTests(root).filter((test) => files.some((file) => distance(file, test) <= farthest));
}

async function runStryker(tests) {
  const folder = mkdtempSync(join(tmpdir(), "agentauth-mutants-"));
  // Programs that tests start must not be coloured by the terminal of this run, nor is dist/ of interest.
  const settings = join(folder, "settings.json");
  Object.assign(process.env, { NO_COLOR: "1", AGENTAUTH_TEST_BUILD: "none", AGENTAUTH_MUTATION: settings });
  const write = (sources) => writeFileSync(settings, JSON.stringify({ tests, chosen: [...rows.keys()], sources }));
  write({});
  listener.onPlan = (mutants) => {
    write(Object.fromEntries(mutants.map(({ id, fileName }) => [id, fileName.slice(root.length + 1)])));
    console.log(`the tests of ${tests.length} files pass without a mutant`);
  };
  listener.onMutant = add;
  const timer = values.changed && setTimeout(stop, CHANGED.ms);
  process.once("SIGTERM", stop);
  const runner = "node_modules/@stryker-mutator/vitest-runner/dist/src/index.js";
  try {
    await new Stryker({
      testRunner: "vitest",
      plugins: [join(import.meta.dirname, runner), join(import.meta.dirname, "plugin.mjs")],
      checkers: ["chosen"],
      reporters: ["listener"],
      coverageAnalysis: "perTest",
      mutate: [...new Set(chosen.map(rangeOf))],
      vitest: { configFile: "scripts/mutation/vitest.config.mjs", related: false, pool: "forks" },
      concurrency: Math.max(2, availableParallelism()),
      symlinkNodeModules: true,
      tempDirName: ".mutation",
      cleanTempDir: "always",
      ignorePatterns: [
        "dist",
        "docs/.vitepress",
        "bench",
        "coverage",
        "test/clients",
        "test/conformance",
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

function add(result) {
  // Stryker counts lines and columns from 1 in its results, and from 0 everywhere else.
  const moved = ({ line, column }) => ({ line: line - 1, column: column - 1 });
  const location = { start: moved(result.location.start), end: moved(result.location.end) };
  const mutant = rows.get(keyOf(root, { ...result, location }));
  if (mutant === undefined) return;
  mutant.status = result.status;
  if (KILLED.includes(result.status)) return;
  const { fileName, from, to } = mutant;
  console.log(`\n# ${fileName}\n- ${from}\n+ ${to}\n(line ${result.location.start.line}, ${result.status})`);
}

function stop() {
  console.log("\nstopped before the end: npm run mutate -- <file> runs the rest");
  finish();
  process.exit();
}

/** Prints the share of killed mutants of each area. */
function finish() {
  const run = chosen.filter(({ status }) => status !== undefined);
  const isKilled = ({ status }) => KILLED.includes(status);
  const areaOf = ({ fileName }) => fileName.split("/")[1].replace(/\.ts$/, "");
  // What no near test of this process runs may be covered by tests of processes, or by far ones.
  const uncovered = run.filter(({ status }) => status === "NoCoverage").length;
  let isGood = values.sample !== undefined || run.every((mutant) => isKilled(mutant) || mutant.status === "NoCoverage");
  for (const area of [...new Set(run.map(areaOf))].sort()) {
    const all = run.filter((mutant) => areaOf(mutant) === area);
    const percent = (100 * all.filter(isKilled).length) / all.length;
    if (values.sample !== undefined && percent < goalOf(area)) isGood = false;
    console.log(`${area}: ${all.filter(isKilled).length} of ${all.length} killed, ${percent.toFixed(1)} %`);
  }
  const left = `${uncovered} in code that these tests do not run, ${chosen.length - run.length} not run`;
  console.log(`${run.filter(isKilled).length} of ${run.length} killed, ${left}`);
  process.exitCode = isGood ? 0 : 1;
}
