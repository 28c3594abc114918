import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

it("docs/testing.md has a first program that passes as it is shown", () => {
  const program = /^```js\n(.*?)^```$/ms.exec(readFileSync("docs/testing.md", "utf8"))?.[1] ?? "";
  expect(program).not.toBe("");
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});

/** The programs that a page shows, each as a module of this project; the language is JavaScript or TypeScript. */
function modulesOf(page: string): [path: string, text: string][] {
  const blocks = readFileSync(page, "utf8").matchAll(/^```(js|ts)\n(.*?)^```$/gms);
  const name = page.replace(/^docs\/|\.md$/g, "");
  return [...blocks].map(([, language, text = ""], nth) => [
    resolve("test", `${name}-${nth}.${language}.ts`),
    `${text}\nexport {};\n`,
  ]);
}

/** A name that the text around a program explains, and a file that it leaves to the reader. */
const OF_THE_READER = new Set([2304, 2552, 18004, 2307]);
/** Types that a program in JavaScript does not write: those of parameters, and of packages without any. */
const OF_JAVASCRIPT = new Set([7006, 7016, 7031]);

it("the programs of every page have the types of the package", () => {
  const pages = ["README.md", ...readdirSync("docs").flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : []))];
  const modules = new Map(pages.flatMap(modulesOf));
  expect(modules.size).toBeGreaterThan(40);
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile("tsconfig.json", ts.sys.readFile).config,
    ts.sys,
    ".",
  );
  const checked = { ...options, noUnusedLocals: false, noUnusedParameters: false, incremental: false };
  delete checked.tsBuildInfoFile;
  const host = ts.createCompilerHost(checked);
  const { fileExists, readFile } = host;
  host.fileExists = (path) => modules.has(path) || fileExists(path);
  host.readFile = (path) => modules.get(path) ?? readFile(path);
  const program = ts.createProgram([...modules.keys()], checked, host);
  const found = [...modules.keys()].flatMap((path) => {
    const file = program.getSourceFile(path);
    const problems = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    const isAllowed = ({ code, messageText }: ts.Diagnostic) =>
      (OF_THE_READER.has(code) && (code !== 2307 || /'\.\.?\//.test(String(messageText)))) ||
      (path.endsWith(".js.ts") && OF_JAVASCRIPT.has(code));
    return problems
      .filter((problem) => !isAllowed(problem))
      .map(({ messageText }) => `${path}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`);
  });
  expect(found).toEqual([]);
});
