import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** The bundled packages whose types an entry point exports, with the file that declares them. */
const PACKAGES = { "openapi-fetch": "dist/index.d.mts", "openapi-typescript-helpers": "dist/index.d.mts" };
const FOLDER = "types";

/**
 * Copies the declarations of bundled packages into a folder beside ours, and makes all declarations refer to the copies:
 * those packages are not installed.
 *
 * @param {string} made the folder of the build
 * @param {string} root the folder of the project
 * @returns the files that were copied
 */
export function addPackageTypes(made, root) {
  const copied = Object.entries(PACKAGES).map(([name, file]) => [name, join(root, "node_modules", name, file)]);
  for (const [name, file] of copied) {
    const text = readFileSync(file, "utf8");
    mkdirSync(join(made, FOLDER, name), { recursive: true });
    writeFileSync(join(made, FOLDER, name, "index.d.ts"), text.replace(/^\/\/# sourceMappingURL=.*$/m, ""));
  }
  for (const path of declarationsIn(made)) {
    const text = readFileSync(path, "utf8");
    const own = text.replaceAll(/(?<=\bfrom |\bimport\()["']([^"'./][^"']*)["']/g, (specifier, name) => {
      return name in PACKAGES ? JSON.stringify(specifierOf(path, join(made, FOLDER, name, "index.js"))) : specifier;
    });
    if (own !== text) writeFileSync(path, own);
  }
  return copied.map(([, file]) => file);
}

/**
 * Reduces the declarations in a folder to those that the entry points reach.
 *
 * @param {string} made the folder of the build
 * @param {readonly string[]} entries the entry points' declarations, relative to `made`
 */
export function reduceDeclarations(made, entries) {
  const reached = reachedFrom(entries.map((entry) => join(made, entry)));
  for (const path of declarationsIn(made)) if (!reached.has(path)) rmSync(path);
}

function declarationsIn(made) {
  const names = readdirSync(made, { recursive: true });
  return names.filter((name) => name.endsWith(".d.ts")).map((name) => join(made, name));
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

/** The specifier with which the module in one file imports another file. */
function specifierOf(from, to) {
  const path = relative(dirname(from), to).replaceAll("\\", "/");
  return path.startsWith(".") ? path : `./${path}`;
}
