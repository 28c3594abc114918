// Tries the parsers on random inputs: npm run fuzz [-- --runs <inputs a property>] [--seed <seed>] [name of a test].
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";

const root = dirname(dirname(import.meta.dirname));
const { values, positionals } = parseArgs({
  options: { runs: { type: "string", default: "1000" }, seed: { type: "string" } },
  allowPositionals: true,
});
for (const [name, value] of Object.entries(values)) {
  if (!/^\d{1,9}$/.test(value)) throw new TypeError(`--${name} ${value} is not a whole number`);
}
const seed = values.seed ?? String(randomInt(1_000_000_000));
console.log(`seed ${seed}, ${values.runs} inputs a property`);
const env = { ...process.env, FUZZ_RUNS: values.runs, FUZZ_SEED: seed };
const names = positionals.flatMap((name) => ["--testNamePattern", name]);
// A separate report, and no time limit.
const args = ["run", "test/fuzz", "--reporter=default", "--testTimeout=0", ...names];
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
const { status } = spawnSync(process.execPath, [vitest, ...args], { cwd: root, env, stdio: "inherit" });
process.exitCode = status ?? 1;
