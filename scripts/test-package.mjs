// Tests the package as users install it: packed, installed into an empty folder, run and type-checked there.
// With --update it writes the list of packed files instead of comparing it.
import { strict as assert } from "node:assert";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import spawn from "cross-spawn";
import { buildSync } from "esbuild";

const scripts = dirname(fileURLToPath(import.meta.url));
const root = dirname(scripts);
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const folder = mkdtempSync(join(tmpdir(), "agentauth-package-"));
// The environment that npm sets for the scripts that it runs would point the npm below at this folder, not at the one it runs in.
const inherited = Object.entries(process.env).filter(
  ([name]) => !/^npm_(package|lifecycle|command|config_(local_)?prefix)/.test(name),
);
const env = { ...Object.fromEntries(inherited), AGENTAUTH_HOME: join(folder, "home") };
const isWindows = process.platform === "win32";

/** The size in kB of what a browser loads at once for each part of the library, minified and compressed: without `import()`. */
const BUNDLES = [
  { part: "lists", program: 'export { ManagementClient } from "agentauth"', limit: 30 },
  { part: "tokens", program: 'export { AgentClient } from "agentauth"', limit: 80 },
  { part: "the resource server", program: 'export * from "agentauth/resource-server"', limit: 32 },
];

try {
  const tarball = pack();
  compareFiles(tarball);
  tryMaps(tarball);
  tryLibrary(install("library", tarball, ["--omit=optional"]));
  tryPackedDemo();
  // A program that imports agentauth/otel has the peer.
  tryEverything(install("everything", tarball, ["@opentelemetry/api"]));
  for (const npm of ["10", "11", "12"]) tryFirstSteps(npm, tarball);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function pack() {
  run("npm", ["pack", "--pack-destination", folder], root);
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  return join(folder, tarball);
}

function compareFiles(tarball) {
  const list = join(scripts, "package-files.txt");
  // Not its path: GNU tar takes what is before a colon for the name of a machine.
  const packed = run("tar", ["-tzf", basename(tarball)], dirname(tarball))
    .trim()
    .split(/\r?\n/);
  // The names of chunks contain a hash of their content.
  const names = packed.map((name) =>
    name.replace(/^package\//, "").replace(/-[A-Z\d]{8}(\.c?js(?:\.map)?)$/, "-HASH$1"),
  );
  const files = [...new Set(names)].sort();
  if (process.argv.includes("--update")) return writeFileSync(list, `${files.join("\n")}\n`);
  const wanted = readFileSync(list, "utf8").trim().split("\n");
  const surplus = files.filter((file) => !wanted.includes(file)).map((file) => `+ ${file}`);
  const missing = wanted.filter((file) => !files.includes(file)).map((file) => `- ${file}`);
  if (surplus.length + missing.length > 0) {
    const differences = [...surplus, ...missing].join("\n");
    throw new Error(
      `the packed files are not those of scripts/package-files.txt (+ packed but not listed, - listed but not packed):\n${differences}\nIf this is intended: npm run test:package -- --update`,
    );
  }
  console.log(`packed: ${packed.length} files, ${kilobytes(statSync(tarball).size)} compressed`);
}

/** Every file that a packed file names as its map, and every source that a map names without its text, has to be packed too. */
function tryMaps(tarball) {
  const target = join(folder, "packed");
  mkdirSync(target);
  run("tar", ["-xzf", basename(tarball), "-C", basename(target)], folder);
  const files = readdirSync(target, { recursive: true }).filter((name) => /\.(?:[cm]?js|ts|map)$/.test(name));
  for (const file of files.map((name) => join(target, name))) {
    const text = readFileSync(file, "utf8");
    const named = file.endsWith(".map")
      ? JSON.parse(text).sources.filter((_source, at) => JSON.parse(text).sourcesContent?.[at] == null)
      : [...text.matchAll(/^\/\/# sourceMappingURL=(?!data:)(.+)$/gm)].map(([, name]) => name);
    for (const name of named)
      assert.ok(existsSync(join(dirname(file), name)), `${file} names ${name}, which is not packed`);
  }
}

function install(name, tarball, flags) {
  const target = join(folder, name);
  mkdirSync(target);
  const manifest = { name: "consumer", private: true, type: "module", dependencies: { agentauth: `file:${tarball}` } };
  writeFileSync(join(target, "package.json"), JSON.stringify(manifest));
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", ...flags], target);
  const { packages } = JSON.parse(readFileSync(join(target, "node_modules/.package-lock.json"), "utf8"));
  const size = sizeOf(join(target, "node_modules"));
  console.log(`installed ${name}: ${Object.keys(packages).length} packages, ${kilobytes(size)}`);
  return target;
}

function tryLibrary(target) {
  for (const name of ["library", "resource-server"]) {
    runProgram(`${name}.mjs`, target);
    checkTypes(`${name}.ts`, target);
  }
  tryCommands(target);
  for (const bundle of BUNDLES) tryBundle(bundle, target);
}

function tryBundle({ part, program, limit }, target) {
  const stdin = { contents: program, resolveDir: target };
  const { outputFiles, metafile } = buildSync({
    stdin,
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    outdir: target,
    absWorkingDir: target,
    metafile: true,
    logLevel: "error",
    write: false,
  });
  const loaded = new Set();
  const load = (name) => {
    if (loaded.has(name)) return;
    loaded.add(name);
    for (const { path, kind } of metafile.outputs[name].imports) if (kind === "import-statement") load(path);
  };
  load("stdin.js");
  const sizes = outputFiles.flatMap(({ path, contents }) =>
    loaded.has(relative(target, path)) ? [gzipSync(contents).length] : [],
  );
  assert.equal(sizes.length, loaded.size, `the files that the bundle of ${part} loads at once`);
  const size = sizes.reduce((sum, one) => sum + one);
  assert.ok(size <= limit * 1000, `the bundle of ${part} loads ${size} bytes at once, more than ${limit} kB`);
  console.log(`bundle of ${part}, loaded at once: ${kilobytes(size)} compressed`);
}

/** test/e2e/typescript-app.ts is a whole app with the package. */
function tryEverything(target) {
  runProgram("one-library.mjs", target);
  tryCommands(target);
}

function tryCommands(target) {
  assert.equal(run("npx", ["--no-install", "agentauth", "--version"], target).trim(), version);
  assert.match(
    run("npx", ["--no-install", "agentauth", "demo"], target),
    /(\d+) of \1 devices arrived in order, none twice/,
  );
}

/** Runs the line of README for the packed package, which is in the folder already. */
function tryPackedDemo() {
  const [, line] = /`(npx --yes --package [^`]+)`/.exec(readFileSync(join(root, "README.md"), "utf8")) ?? [];
  assert.ok(line, "the line of README for the packed package");
  shell(line, folder, { ...env, npm_config_prefer_offline: "true" });
  console.log(`${line}: runs`);
}

/** Runs what docs/getting-started.md says about the installation, in a fresh checkout with another name. */
function tryFirstSteps(major, tarball) {
  const place = join(folder, `npm ${major}`);
  const [tools, checkout, prefix] = ["tools", "a checkout", "prefix"].map((name) => join(place, name));
  mkdirSync(tools, { recursive: true });
  writeFileSync(join(tools, "package.json"), "{}");
  // npm 12 runs on Node 22 and later.
  const node = major === "12" && Number.parseInt(process.versions.node, 10) < 22 ? ["node@24"] : [];
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", `npm@${major}`, ...node], tools);
  const bins = isWindows ? prefix : join(prefix, "bin");
  const path = [bins, join(tools, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const own = { ...env, PATH: path, npm_config_prefix: prefix, npm_config_prefer_offline: "true" };
  copySources(checkout);

  const page = readFileSync(join(root, "docs/getting-started.md"), "utf8");
  const steps = [...page.split("## 2.")[0].matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text]) => text);
  assert.equal(steps.length, 2, "the steps of the installation");
  shell(`${steps.join("")}node -e "import('agentauth')"`, checkout, own);
  tryGlobal(major, own, checkout);
  run("npm", ["uninstall", "--global", "agentauth"], place, own);
  const said = run("npm", ["install", "--global", tarball], place, own, "stderr");
  assert.ok(!said.includes("agentauth@"), `npm ${major} warns of the package:\n${said}`);
  tryGlobal(major, own, place);
  console.log(`npm ${major}: the steps of the page and the package install the command`);
}

/** The command and its manual page, which npm 12 links nowhere. */
function tryGlobal(major, own, cwd) {
  assert.equal(run("agentauth", ["--version"], cwd, own).trim(), version);
  const packages = run("npm", ["root", "--global"], cwd, own).trim();
  assert.ok(existsSync(join(packages, "agentauth/docs/man/agentauth.1")), `no manual page in ${packages}`);
  const isLinked = existsSync(join(own.npm_config_prefix, "share/man/man1/agentauth.1"));
  assert.equal(isLinked, !isWindows && major !== "12", `npm ${major} links the manual page`);
}

function copySources(target) {
  const files = run("git", ["ls-files", "-z"], root).split("\0").filter(Boolean);
  for (const file of files.filter((name) => existsSync(join(root, name)))) {
    mkdirSync(dirname(join(target, file)), { recursive: true });
    copyFileSync(join(root, file), join(target, file));
  }
}

/** Runs lines of a page in the shell of the system. */
function shell(text, cwd, own) {
  if (isWindows) run("powershell", ["-NoProfile", "-Command", text], cwd, own);
  else run("bash", ["-euc", text], cwd, own);
}

function runProgram(name, target) {
  copyFileSync(join(scripts, "consumer", name), join(target, name));
  run(process.execPath, [name], target);
  console.log(`${name}: runs`);
}

/** Checks the declarations too, as a user's compiler does. */
function checkTypes(name, target) {
  copyFileSync(join(scripts, "consumer", name), join(target, name));
  const compilerOptions = {
    target: "ES2023",
    lib: ["ES2023", "DOM", "DOM.Iterable"],
    types: [],
    module: "NodeNext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    noEmit: true,
  };
  writeFileSync(join(target, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [name] }));
  run(process.execPath, [createRequire(import.meta.url).resolve("typescript/bin/tsc"), "-p", "."], target);
  console.log(`${name}: its types are correct`);
}

/** Runs a command and returns its output; an error has the whole output. */
function run(command, args, cwd, environment = env, stream = "stdout") {
  const options = { cwd, env: environment, encoding: "utf8", timeout: 180_000 };
  const result = spawn.sync(command, args, options);
  if (result.status === 0) return result[stream];
  // A stack trace quotes whole lines of the bundle.
  const said = `${result.stdout ?? ""}${result.stderr ?? ""}${result.error ?? ""}`.replace(/^(.{400}).+$/gm, "$1…");
  throw new Error(`${command} ${args.join(" ")} failed (${result.status ?? result.signal}):\n${said}`);
}

function sizeOf(path) {
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

function kilobytes(bytes) {
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
