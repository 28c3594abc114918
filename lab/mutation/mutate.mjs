// Mutates the sources with StrykerJS and runs the tests against each mutant; fails where one survives.
//   npm run mutate -- src/http src/node/retry.ts:20-40    folders, files, lines
//   npm run mutate -- --changed [<commit>]                the lines that differ from a commit, by default from main
//   npm run mutate -- --sample 200 --seed 7 [src/oauth]   drawn at random, the same for the same seed; fails below a score
//   npm run mutate -- --sample 600 --seed 7,8,9           an equal part with each seed
import { spawn, spawnSync } from "node:child_process";
import { existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;
const installed = join(folder, "node_modules", ".package-lock.json");
if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(join(folder, "package-lock.json")).mtimeMs) {
  // Vitest is a peer of the runner: the project's own is used.
  const { status } = spawnSync("npm", ["ci", "--legacy-peer-deps", "--prefix", folder], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
const node = join(folder, "node_modules", "node", "bin", "node");
// In a group of its own, since workers whose test hangs do not notice that Stryker has ended.
const child = spawn(node, [join(folder, "run.mjs"), ...process.argv.slice(2)], { stdio: "inherit", detached: true });
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill("SIGTERM"));
child.on("exit", (code) => {
  process.exitCode = code ?? 1;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // Nobody of it is left.
  }
  rmSync(".mutation", { recursive: true, force: true });
});
