// esbuild puts two modules into one chunk only if exactly the same entry points import them. With one entry point for each
// lazily loaded command, the code that every command shares fell apart into about thirty chunks, and each file that a
// process reads costs more than what is in it.
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/**
 * The esbuild plugin that keeps the static imports of one module in one chunk.
 *
 * Each module in `folder` that is loaded by `import()` seems to import `shared` too. That module is loaded before any of
 * them, so nothing more is read or run, and esbuild sees one set of users for all of it.
 *
 * @param options `plan` names more modules that a module seems to import, by its path; all paths are absolute
 */
export function sharedChunk({ folder, shared, plan = new Map() }) {
  return {
    name: "shared-chunk",
    async setup({ onLoad }) {
      const lazy = await lazyModules(folder);
      lazy.delete(shared);
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const targets = [...(lazy.has(path) ? [shared] : []), ...(plan.get(path) ?? [])];
        if (targets.length === 0) return undefined;
        const imports = targets.map((target) => `import ${JSON.stringify(target)};\n`);
        return { contents: `${await readFile(path, "utf8")}\n${imports.join("")}`, loader: "ts" };
      });
    },
  };
}

/** The modules of a folder that a module in it loads by `import()`. */
async function lazyModules(folder) {
  const paths = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ts"));
  const found = new Set();
  for (const path of paths.map((name) => join(folder, name))) {
    for (const [, target] of (await readFile(path, "utf8")).matchAll(/\bimport\("(\.[^"]+)\.js"\)/g)) {
      const file = resolve(dirname(path), `${target}.ts`);
      if (file.startsWith(join(folder, "/")) && existsSync(file)) found.add(file);
    }
  }
  return found;
}
