import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/**
 * Reduces the declarations in `made` to those that the entry points reach, and adds the sources that their maps lead to,
 * so that "go to definition" of an editor shows the code and its comments.
 *
 * @param {string} made the folder of the build
 * @param {{ entries: readonly string[], sources: string }} options the entry points' declarations, relative to `made`;
 * the folder of the sources
 */
export function shipDeclarations(made, { entries, sources }) {
  const reached = reachedFrom(entries.map((entry) => join(made, entry)));
  for (const name of readdirSync(made, { recursive: true })) {
    const path = join(made, name);
    if (/\.d\.ts(\.map)?$/.test(name) && !reached.has(path.replace(/\.map$/, ""))) rmSync(path);
  }
  for (const path of reached) {
    const map = JSON.parse(readFileSync(`${path}.map`, "utf8"));
    const [source] = map.sources;
    const name = relative(sources, resolve(dirname(path), source));
    const copy = join(made, "src", name);
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(join(sources, name), copy);
    writeFileSync(
      `${path}.map`,
      JSON.stringify({ ...map, sources: [relative(dirname(path), copy).replaceAll("\\", "/")] }),
    );
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
