// Which tests are run against the mutants of a source file.
import { existsSync, globSync } from "node:fs";
import { basename, dirname, sep } from "node:path";

/** The tests of the sources that start no process. Those beside src/'s mirrors read sources as text. */
export function allTests() {
  const isOfSource = (path) => dirname(path) !== "test" || existsSync(`src/${basename(path, ".test.ts")}.ts`);
  return globSync("test/**/*.test.ts", { exclude: (name) => name === "node_modules" })
    .map((path) => path.split(sep).join("/"))
    .filter((path) => !path.endsWith(".process.test.ts") && isOfSource(path));
}

/**
 * How near: 0 the mirror of the file, 1 its folder, 2 a hostile table or a flow named like it, 3 a test of its whole area,
 * 4 any test of it, 5 neither.
 */
export function distance(source, test) {
  const folder = dirname(source).replace(/^src/, "test");
  if (test === `${folder}/${basename(source)}`.replace(/ts$/, "test.ts")) return 0;
  // Beside the rooms, such as src/errors.ts: every test is below its folder.
  if (folder !== "test" && test.startsWith(`${folder}/`)) return 1;
  if (/^test\/(?:flow|hostile)\//.test(test)) {
    const words = wordsOf(basename(test, ".test.ts"));
    return wordsOf(source).some((word) => words.includes(word)) ? 2 : 5;
  }
  if (test.split("/")[1] !== folder.split("/")[1]) return 5;
  return test.split("/").length === 3 ? 3 : 4;
}

/** The words of a name by how they begin: a table about storage is named like the store. */
const wordsOf = (path) =>
  path
    .replace(/^src\/(?:cli\/)?|\.ts$/g, "")
    .split(/[/-]/)
    .map((word) => word.slice(0, 4));
