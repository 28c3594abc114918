// Runs every hostile case of test/hostile against the command line and the library, prints a row per case and the
// count, and exits with 1 if one is not handled safely.
//   npm run hostile                  --long  runs 1,000 logins under a flood of forged callbacks, not 20
import { cpus } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startVitest } from "vitest/node";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: flags } = parseArgs({ options: { long: { type: "boolean" } } });

const rows = rowsOf(await runSuite());
for (const { id, input, result, problems, exit } of rows) {
  const verdict = problems.length === 0 ? "safe" : "UNSAFE";
  console.log(
    `${verdict.padEnd(6)} ${id.padEnd(14)} ${input} -> ${result}${exit === undefined ? "" : ` (exit ${exit})`}`,
  );
  for (const problem of problems) console.log(`         ${problem.replaceAll("\n", "\n         ")}`);
}
const unsafe = rows.filter(({ problems }) => problems.length > 0).length;
console.log(`\n${summary()}`);
process.exitCode = unsafe === 0 && rows.length > 0 ? 0 : 1;

/** Runs vitest and returns its tests. */
async function runSuite() {
  if (flags.long) process.env["HOSTILE_LOGINS"] = "1000";
  let done = 0;
  const progress = { onTestCaseResult: () => process.stderr.isTTY && process.stderr.write(`\r${++done} tests`) };
  const options = { root, watch: false, reporters: [progress], coverage: { enabled: false } };
  const vitest = await startVitest("test", ["test/hostile"], options);
  const modules = vitest.state.getTestModules();
  await vitest.close();
  for (const module of modules)
    for (const { message } of module.errors()) throw new Error(`${module.moduleId}: ${message}`);
  return modules.flatMap((module) => [...module.children.allTests()]);
}

/** One row per case in the order of the tables, with the results of the command line and the library. */
function rowsOf(tests) {
  const rows = new Map();
  const ids = tests.flatMap((test) => test.meta().hostileIds ?? []);
  for (const test of tests) {
    const { hostile } = test.meta();
    if (!hostile) continue;
    const { id, input, result, ...measured } = hostile;
    const row = rows.get(id) ?? { id, input, result, problems: [], sides: [] };
    row.sides.push(test.fullName.includes(", library >") ? "library" : "command");
    row.problems.push(
      ...(test.result().errors ?? []).map(({ message }) => message.replace(/: expected \[[\s\S]*$/, "")),
    );
    rows.set(id, Object.assign(row, measured));
  }
  return [...rows.values()].sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
}

function summary() {
  const most = (name) => Math.max(...rows.map((row) => row[name] ?? 0));
  const sides = rows.flatMap((row) => row.sides);
  const count = (side) => sides.filter((one) => one === side).length;
  return [
    `${rows.length} hostile inputs: ${rows.length - unsafe} handled safely, ${unsafe} not`,
    `${count("command")} run with the command line, ${count("library")} with the library`,
    `peak memory ${Math.round(most("megabytes"))} MB`,
    `Node ${process.version}, ${process.platform} ${process.arch}, ${cpus().length} cores`,
  ].join("; ");
}
