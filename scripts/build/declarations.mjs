import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/**
 * Reduces the declarations in a folder to those that the entry points reach.
 *
 * @param {string} made the folder of the build
 * @param {readonly string[]} entries the entry points' declarations, relative to `made`
 */
export function reduceDeclarations(made, entries) {
  const reached = reachedFrom(entries.map((entry) => join(made, entry)));
  for (const name of readdirSync(made, { recursive: true })) {
    const path = join(made, name);
    if (name.endsWith(".d.ts") && !reached.has(path)) rmSync(path);
  }
}

/** The declarations that others import, directly or through more of them. */
function reachedFrom(entries) {
  const reached = new Set(entries);
  for (const path of reached) {
    const text = readFileSync(path, "utf8");
    for (const [, from] of text.matchAll(/(?:from |import\()"(\.[^"]+)\.js"/g))
      reached.add(`${resolve(dirname(path), from)}.d.ts`);
  }
  return reached;
}
