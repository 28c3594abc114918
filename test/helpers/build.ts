import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const BUILT = join(root, "dist/cli/main.cjs");
const SOURCES = ["src", "scripts/build", "scripts/build.mjs", "package.json"];

/** Builds `dist/` once before the tests that run it, if a source is newer. */
export default function build(): void {
  // `npm run mutate` changes sources, and none of its tests runs `dist/`.
  if (process.env["AGENTAUTH_TEST_BUILD"] === "none") return;
  const builtAt = existsSync(BUILT) ? statSync(BUILT).mtimeMs : 0;
  if (SOURCES.every((path) => changedAt(join(root, path)) <= builtAt)) return;
  process.stderr.write("dist/ is older than its sources: npm run build\n");
  execFileSync(process.execPath, [join(root, "scripts/build.mjs")], { stdio: ["ignore", "ignore", "inherit"] });
}

/** When a file, or the newest file of a folder, was changed. */
function changedAt(path: string): number {
  if (!statSync(path).isDirectory()) return statSync(path).mtimeMs;
  return Math.max(...readdirSync(path).map((name) => changedAt(join(path, name))));
}
