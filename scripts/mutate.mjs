// Shows for every guard in scripts/mutations/ that a test fails when it is removed. It applies each mutation in a copy of
// the project and runs the tests of its row. A mutation without a failing test is an error, unless its row has a reason.
// In a table, "#" names the file, "-" the original text (unique in the file), "+" its replacement, "?" the test files
// (grant/refresh: refresh.test.ts and refresh.process.test.ts) and after a colon a filter of their titles, "=" the reason
// why the mutation is equivalent.
//
//   node scripts/mutate.mjs [--jobs <n>] [part of a file name or of a guard …]
//   node scripts/mutate.mjs --check   only whether the source still has what each row replaces, and the tests its titles
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { unmatched } from "./mutations/titles.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values, positionals } = parseArgs({
  options: { jobs: { type: "string", default: "2" }, check: { type: "boolean", default: false } },
  allowPositionals: true,
});
const TIMEOUT_MS = 180_000;

const chosen = ["store", "oauth", "resource-server", "mcp", "cli"].flatMap(readTable).filter(({ file, from }) => {
  return positionals.length === 0 || positionals.some((part) => file.includes(part) || from.includes(part));
});
const stale = chosen.filter(({ file, from }) => readFileSync(join(root, file), "utf8").split(from).length !== 2);
for (const { file, from } of stale) console.log(`stale     ${file}: ${oneLine(from)}`);
if (values.check) {
  const untested = chosen.flatMap(({ tests, only = "", file }) => unmatched(tests, only).map((title) => [file, title]));
  for (const [file, title] of untested) console.log(`no test   ${file}: no title matches "${title}"`);
  process.exit(stale.length + untested.length === 0 ? 0 : 1);
}

const copies = Array.from({ length: Number(values.jobs) }, copyOfProject);
process.once("exit", () => {
  for (const copy of copies) rmSync(copy, { recursive: true, force: true });
});
process.once("SIGINT", () => process.exit(130));

const queue = chosen.filter((row) => !stale.includes(row));
const tally = { killed: 0, equivalent: 0, survived: 0 };
await Promise.all(copies.map(work));
console.log(
  `${tally.killed} killed, ${tally.equivalent} equivalent, ${tally.survived} survived, ${stale.length} stale`,
);
process.exitCode = tally.survived + stale.length === 0 ? 0 : 1;

function readTable(name) {
  const text = readFileSync(join(root, "scripts", "mutations", `${name}.txt`), "utf8");
  let file = "";
  return text.split(/\n\n+/).flatMap((block) => {
    if (block.startsWith("# ")) file = block.slice(2).trim();
    const of = (sign) =>
      block
        .split("\n")
        .filter((line) => line.startsWith(`${sign} `))
        .map((line) => line.slice(2));
    const [names = "", only] = (of("?")[0] ?? "").split(" : ");
    const tests = names.split(" ").map((one) => join("test", `${one}.`));
    const row = { file, from: of("-").join("\n"), to: of("+").join("\n"), tests, only, equivalent: of("=")[0] };
    return row.from === "" ? [] : [row];
  });
}

function copyOfProject() {
  const copy = mkdtempSync(join(tmpdir(), "agentauth-mutants-"));
  for (const name of readdirSync(root)) {
    if (
      ["src", "test", "examples", "openapi.yaml", "package.json", "tsconfig.json", "vitest.config.ts"].includes(name)
    ) {
      cpSync(join(root, name), join(copy, name), { recursive: true });
    }
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

async function work(copy) {
  for (let row = queue.shift(); row; row = queue.shift()) {
    const path = join(copy, row.file);
    const before = readFileSync(path, "utf8");
    writeFileSync(
      path,
      before.replace(row.from, () => row.to),
    );
    const { failed, output } = await run(copy, row);
    writeFileSync(path, before);
    report(row, failed, output);
  }
}

function report({ file, from, to, equivalent }, failed, output) {
  const verdict = failed ? "killed" : equivalent ? "equivalent" : "survived";
  tally[verdict]++;
  console.log(`${verdict.padEnd(11)}${file}: ${oneLine(from)} -> ${oneLine(to) || "(nothing)"}${output}`);
}

/** Whether the tests fail, as they should; a run without any test is an error of the table. */
async function run(copy, { tests, only }) {
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const filter = only === undefined ? [] : ["-t", only];
  const args = [vitest, "run", "--bail", "1", "--reporter", "dot", "--maxWorkers", "1", ...filter, ...tests];
  const begun = Date.now();
  // The sources are what is tested: no test of a row runs dist/.
  const env = { ...process.env, NO_COLOR: "1", AGENTAUTH_TEST_BUILD: "none" };
  const options = { cwd: copy, env, stdio: ["ignore", "pipe", "ignore"], timeout: TIMEOUT_MS, killSignal: "SIGKILL" };
  const child = spawn(process.execPath, args, options);
  let text = "";
  child.stdout.on("data", (chunk) => (text += chunk));
  const status = await new Promise((resolve) => child.on("close", resolve));
  // An endless loop prevents a report.
  const ran = /^ +Tests .*\d (failed|passed)/m.test(text) || Date.now() - begun >= TIMEOUT_MS;
  return {
    failed: ran && status !== 0,
    output: ran ? "" : "  (no test ran: no title matches, or the code does not load)",
  };
}

function oneLine(text) {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}
