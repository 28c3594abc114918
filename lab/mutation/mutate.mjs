// Mutates the sources with StrykerJS and runs the tests against each mutant; fails where one survives.
//   npm run mutate -- src/http src/node/retry.ts:20-40    folders, files, lines
//   npm run mutate -- --changed [<commit>]                the lines that differ from a commit, by default from main
//   npm run mutate -- --sample 200 --seed 7 [src/oauth]   drawn at random, the same for the same seed; fails below a score
//   npm run mutate -- --sample 600 --seed 7,8,9           an equal part with each seed
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { installPackages, node } from "../install.mjs";

const folder = import.meta.dirname;
if (!installPackages()) process.exit(1);
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
