// The titles that a filter of tests can match, read from the sources: running `vitest list` takes a minute.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const testFiles = readdirSync(join(root, "test"), { recursive: true })
  .filter((path) => path.endsWith(".test.ts"))
  .map((path) => join("test", path));
const known = new Map();

/** The alternatives of a filter that no title matches in the test files whose paths begin so. */
export function unmatched(paths, filter) {
  const titles = testFiles.filter((file) => paths.some((path) => file.startsWith(path))).flatMap(titlesOf);
  const alternatives = filter.includes("(") ? [filter] : filter.split("|");
  return alternatives.filter((one) => !titles.some((title) => new RegExp(one).test(title)));
}

/** The strings of the titles in a file, and of the tables that they take their names from. */
function titlesOf(file) {
  const titles = known.get(file) ?? readTitles(file);
  known.set(file, titles);
  return titles;
}

function readTitles(file) {
  const source = parse(file);
  // A case or a suite: `it("…", …, () => …)`, `it.each(…)("…", …, () => …)`.
  const declared = nodesIn(source)
    .filter((node) => ts.isCallExpression(node) && node.arguments.length > 1 && isFunction(node.arguments.at(-1)))
    .flatMap((call) => [call.expression, call.arguments[0]].flatMap(nodesIn));
  // The rows of `hostile("…", rows)` have their titles in the tables of test/hostile/cases.
  const rows = nodesIn(source).filter(
    (node) => ts.isCallExpression(node) && node.expression.getText(source) === "hostile",
  );
  const used = [...declared, ...rows.flatMap((call) => call.arguments.flatMap(nodesIn))];
  const names = new Set(used.filter(ts.isIdentifier).map(({ text }) => text));
  const tables = nodesIn(source).flatMap((node) => {
    if (ts.isVariableDeclaration(node) && names.has(node.name.text)) return nodesIn(node);
    return ts.isImportDeclaration(node) ? tablesOf(node, file, names) : [];
  });
  return [...declared, ...tables]
    .filter((node) => ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node))
    .map(({ text }) => text);
}

/** The module of test/ that one of the names is imported from. */
function tablesOf({ importClause, moduleSpecifier }, file, names) {
  const module = normalize(join(dirname(file), moduleSpecifier.text.replace(/\.js$/, ".ts")));
  const imported = importClause === undefined ? [] : nodesIn(importClause).filter(ts.isIdentifier);
  const isUsed = module.startsWith("test") && imported.some(({ text }) => names.has(text));
  return isUsed && existsSync(join(root, module)) ? nodesIn(parse(module)) : [];
}

const parse = (file) => ts.createSourceFile(file, readFileSync(join(root, file), "utf8"), ts.ScriptTarget.Latest);
const isFunction = (node) => ts.isArrowFunction(node) || ts.isFunctionExpression(node);

function nodesIn(node) {
  const nodes = [node];
  ts.forEachChild(node, (child) => void nodes.push(...nodesIn(child)));
  return nodes;
}
