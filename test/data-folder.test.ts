import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

const SRC = join(import.meta.dirname, "../src");

/** What opens or reads a file, or a package or module that does. */
const READING =
  /^(?:readFile|readFileSync|open|openSync|openAsBlob|createReadStream|readv|readvSync|cp|cpSync|copyFile|copyFileSync|promises|default|\*)$/;
const MODULES = /^(?:node:)?fs(?:\/promises)?$/;
const PACKAGES = /^(?:conf|configstore|fs-extra|graceful-fs|cosmiconfig|rc)$/;

/** The modules that read files elsewhere, and which. Those of the data folder are read by store/private/ alone. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "store/private/private-file.ts": "the files of the data folder",
  "store/leases/lock-owner.ts": "/proc",
  "broker/listen.ts": "/proc",
  "profile/audit.ts": "nothing: opens the audit file for appending, with the checks of store/private/",
  "profile/connection-settings.ts": "certificates",
  "cli/main.ts": "the help beside the program",
  "cli/commands/mcp/hosts/settings.ts": "the settings of MCP hosts",
  "cli/commands/sandbox/run.ts": "the options that --options names",
  "cli/commands/broker/run.ts": "the policy that --config names",
  "cli/commands/exec/child.ts": "pipes of the command",
  "cli/commands/request/run.ts": "the file that --data names",
};

/** The functions of `node:fs` that a module imports, by whatever way. */
function readersIn(path: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && !node.importClause?.isTypeOnly) {
      const from = (node.moduleSpecifier as ts.StringLiteral).text;
      const { name, namedBindings: names } = node.importClause ?? {};
      if (PACKAGES.test(from)) found.push(from);
      else if (MODULES.test(from)) {
        if (name !== undefined) found.push("default");
        if (names !== undefined && ts.isNamespaceImport(names)) found.push("*");
        else for (const one of names?.elements ?? []) found.push((one.propertyName ?? one.name).text);
      }
    }
    // `require`, `import()` and `process.getBuiltinModule`.
    if (ts.isCallExpression(node)) {
      const [from] = node.arguments;
      if (from !== undefined && ts.isStringLiteralLike(from) && (MODULES.test(from.text) || PACKAGES.test(from.text)))
        found.push("*");
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest));
  return found.filter((name) => READING.test(name) || PACKAGES.test(name));
}

it("is read by one module, which judges each file, and the folders on the way to it, before it reads", () => {
  const modules = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  const reading = modules
    .filter((path) => readersIn(join(SRC, path)).length > 0)
    .map((path) => path.replaceAll("\\", "/"));
  expect(reading.sort()).toEqual(Object.keys(ELSEWHERE).sort());
});
