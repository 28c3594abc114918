import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

/**
 * Writes the declarations that the entry points reach.
 *
 * @param {string} root the folder of the project
 * @param {string} made the folder of the build
 * @param {readonly string[]} entries the entry points' declarations, relative to `made`
 */
export function writeDeclarations(root, made, entries) {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const args = [tsc, "-p", join(root, "scripts/build/tsconfig.json"), "--emitDeclarationOnly", "--outDir", made];
  if (spawnSync(process.execPath, args, { stdio: "inherit" }).status !== 0) throw new Error("tsc failed");
  const reached = new Set(entries.map((entry) => join(made, entry)));
  for (const path of reached) {
    for (const [, from] of readFileSync(path, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)\.js"/g)) {
      reached.add(`${resolve(dirname(path), from)}.d.ts`);
    }
  }
  for (const name of readdirSync(made, { recursive: true })) {
    const path = join(made, name);
    if (name.endsWith(".d.ts") && !reached.has(path)) rmSync(path);
  }
}
