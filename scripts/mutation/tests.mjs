// Which tests are run against the mutants of a source file.
import { existsSync, globSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";

/** The tests of the sources that start no process. Those beside src/'s mirrors read sources as text. */
export function allTests(root) {
  const isOfSource = (path) =>
    dirname(path) !== "test" || existsSync(join(root, `src/${basename(path, ".test.ts")}.ts`));
  return globSync("test/**/*.test.ts", { cwd: root, exclude: (name) => name === "node_modules" })
    .map((path) => path.split(sep).join("/"))
    .filter((path) => !path.endsWith(".process.test.ts") && isOfSource(path));
}

/** How near: 0 the mirror of the file, 1 its folder, 2 a flow named like it, 3 its area, 4 a hostile table or a flow, 5 neither. */
export function distance(source, test) {
  const folder = dirname(source).replace(/^src/, "test");
  const tested = basename(test, ".test.ts");
  if (test === `${folder}/${basename(source)}`.replace(/ts$/, "test.ts")) return 0;
  if (dirname(test) === folder || test.startsWith(`${folder}/`)) return 1;
  const isFlow = /^test\/(?:flow|hostile)\//.test(test);
  const isNamedAlike = wordsOf(source).some((word) => wordsOf(tested).includes(word));
  if (isFlow) return isNamedAlike ? 2 : 4;
  return test.split("/")[1] === folder.split("/")[1] ? 3 : 5;
}

const wordsOf = (path) =>
  path
    .replace(/\.ts$/, "")
    .split(/[/-]/)
    .filter((word) => !["src", "cli"].includes(word));
