// Checks that the declarations of every entry point compile without skipLibCheck, under each supported version of
// @types/node and in each kind of project. Needs the built package; installs the types into a temporary folder.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import spawn from "cross-spawn";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const MAJORS = [20, 22, 24, 26];
/** The kinds of projects. CommonJS is that of NestJS and ts-jest, which does not know `exports`. */
const PROJECTS = {
  nodenext: { module: "NodeNext" },
  node16: { module: "Node16" },
  bundler: { module: "ESNext", moduleResolution: "Bundler" },
  commonjs: { module: "CommonJS", moduleResolution: "Node10" },
};
const folder = mkdtempSync(join(tmpdir(), "agentauth-types-"));

try {
  for (const major of MAJORS) check(major);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function check(major) {
  const target = join(folder, `node-${major}`);
  mkdirSync(target);
  writeFileSync(join(target, "package.json"), JSON.stringify({ private: true, type: "module" }));
  run("npm", ["install", `@types/node@${major}`, "--prefer-offline", "--no-audit", "--no-fund"], target);
  symlinkSync(root, join(target, "node_modules/agentauth"), "junction");
  const entries = Object.entries(exports).filter(([, entry]) => entry.types !== undefined);
  const names = entries.map(([path]) => `agentauth${path.slice(1)}`);
  const lines = names.map((name, index) => `export * as entry${index} from ${JSON.stringify(name)};\n`);
  writeFileSync(join(target, "index.ts"), lines.join(""));
  const projects = Object.entries(PROJECTS).slice(0, major === MAJORS.at(-1) ? undefined : 1);
  for (const [kind, options] of projects) compile(target, kind, options);
  console.log(`@types/node ${major}: ${names.join(", ")} compile (${projects.map(([kind]) => kind).join(", ")})`);
}

function compile(target, kind, options) {
  const compilerOptions = {
    target: "ES2023",
    lib: ["ES2023"],
    ...options,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ["node"],
    typeRoots: [join(target, "node_modules/@types")],
  };
  const project = `tsconfig.${kind}.json`;
  writeFileSync(join(target, project), JSON.stringify({ compilerOptions, files: ["index.ts"] }));
  run(process.execPath, [tsc, "-p", project], target);
}

/** Runs a command; an error has the whole output. */
function run(command, args, cwd) {
  const options = { cwd, encoding: "utf8", timeout: 180_000 };
  const { status, signal, stdout, stderr } = spawn.sync(command, args, options);
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed (${status ?? signal}):\n${stdout}${stderr}`);
}
