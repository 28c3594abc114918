// Runs lab/runtimes/sdk.mjs against the built library and a new sandbox under several versions of Node, Bun and Deno, and
// its browser part in Chromium; then `npm test` on each Node, and checks the size limit of the management client. An
// unavailable runtime is skipped, and the last line has the number of skipped ones; with --complete a skipped one is a
// failure.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { installPackages } from "../install.mjs";

const folder = import.meta.dirname;
const root = dirname(dirname(folder));
const modules = join(folder, "node_modules");
const suite = join(folder, "sdk.mjs");
const DEVICES = 120;
const SUITE_MS = 60_000;
const TESTS_MS = 30 * 60_000;
const MAX_GZIPPED = 25 * 1024;
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const DENO_FLAGS = ["run", "--no-prompt", "--no-lock", "--allow-net=127.0.0.1", "--allow-env", "--allow-read"];

if (!existsSync(join(root, "dist", "index.js"))) {
  console.error("dist/ is missing: run npm run build");
  process.exit(1);
}
// Not npm ci, which requires the binaries for every other platform in the lock file.
if (!installPackages(folder, ["install", "--no-save"])) {
  console.error("npm could not install every runtime: missing ones are skipped");
}
linkPackage();
const { startSandbox } = await import(pathToFileURL(join(root, "dist", "sandbox", "index.js")).href);

const NODES = ["20", "22", "24", "26"];
const counts = { passed: 0, failed: 0, skipped: 0 };
for (const major of NODES) await report(`node ${major}`, runProgram(nodeOf(major), []));
await report("bun", runProgram(".bin/bun", ["run"]));
await report("deno", runProgram(".bin/deno", DENO_FLAGS));
await report("chromium", runPage());
await report("size", measure());
for (const major of NODES) await report(`npm test on node ${major}`, runTests(nodeOf(major)));
console.log(`runtimes: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
const complete = counts.skipped === 0 || !process.argv.includes("--complete");
process.exitCode = counts.failed === 0 && complete ? 0 : 1;

/** The suite imports the package by its name, as a program does that has installed it. */
function linkPackage() {
  const link = join(modules, "agentauth");
  mkdirSync(modules, { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(root, link, "junction");
}

async function report(name, running) {
  try {
    const { skipped, message } = await running;
    counts[skipped ? "skipped" : "passed"] += 1;
    console.log(`${skipped ? "SKIPPED" : "pass"}  ${name}: ${message}`);
  } catch (error) {
    counts.failed += 1;
    console.log(`FAIL  ${name}: ${error.message}`);
  }
}

function nodeOf(major) {
  return `node-${major}/bin/node`;
}

const UNAVAILABLE = { skipped: true, message: "it cannot be installed or started" };

/** The version that a runtime prints; undefined for one that does not start. */
function versionOf(program) {
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout.trim().split("\n")[0] : undefined;
}

/** Runs the tests of the sources. */
async function runTests(path) {
  const program = join(modules, path);
  const version = versionOf(program);
  if (version === undefined) return UNAVAILABLE;
  const env = { ...process.env, NO_COLOR: "1", PATH: `${dirname(program)}${delimiter}${process.env.PATH}` };
  const args = [join(root, "node_modules", "vitest", "vitest.mjs"), "run", "--project", "in-process*"];
  const { status, output } = await capture(program, args, { env, timeout: TESTS_MS });
  if (status !== 0) throw new Error(`${version} ended with ${status}\n${output}`);
  return { message: `${version}, ${/Tests +(.*)/.exec(output)?.[1]}` };
}

/** Runs the suite as a program of a runtime. */
async function runProgram(path, flags) {
  const program = join(modules, path);
  const version = versionOf(program);
  if (version === undefined) return UNAVAILABLE;
  return withSandbox(async (sandbox) => {
    const env = { ...process.env, RUNTIMES_SANDBOX: JSON.stringify(sandbox), DENO_NO_UPDATE_CHECK: "1" };
    const { status, output } = await capture(program, [...flags, suite], { env, timeout: SUITE_MS });
    const result = /^\{"passed":.*\}$/m.exec(output)?.[0];
    if (status !== 0 || result === undefined) throw new Error(`${version} ended with ${status}\n${output}`);
    return { message: `${version}, ${countOf(JSON.parse(result))} checks` };
  });
}

/** Runs the browser part of the suite in a page at the sandbox's origin, the only one that the sandbox accepts. */
async function runPage() {
  const executablePath = CHROMIUM.find(existsSync);
  if (!executablePath) return { skipped: true, message: "it is not installed: apt-get install -y chromium" };
  const contents = `import { KEYS, MANAGEMENT, run } from ${JSON.stringify(suite)};
    globalThis.runSuite = (sandbox) => run({ ...MANAGEMENT, ...KEYS }, sandbox);`;
  const script = await bundle(contents);
  const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    return await withSandbox(async (sandbox) => {
      const page = await browser.newPage();
      const address = `${sandbox.origin}/page-of-the-suite`;
      await page.route(address, (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html>" }));
      await page.goto(address);
      await page.addScriptTag({ content: script, type: "module" });
      await page.waitForFunction(() => globalThis.runSuite !== undefined);
      const result = await page.evaluate((given) => globalThis.runSuite(given), sandbox);
      return { message: `${browser.version()}, ${countOf(result)} checks in a page` };
    });
  } finally {
    await browser.close();
  }
}

/** The number of passed checks. @throws if one fails */
function countOf({ passed, failures }) {
  if (failures.length > 0 || passed === 0) throw new Error(`${passed} checks passed\n${failures.join("\n")}`);
  return passed;
}

/** The bundle size of the management client in a page. */
async function measure() {
  const script = await bundle(
    `import { ManagementClient } from "agentauth"; globalThis.ManagementClient = ManagementClient;`,
  );
  const size = gzipSync(script, { level: 9 }).length;
  const message = `ManagementClient takes ${script.length} bytes minified, ${size} gzipped; the limit is ${MAX_GZIPPED}`;
  if (size > MAX_GZIPPED) throw new Error(message);
  return { message };
}

async function bundle(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    treeShaking: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    write: false,
    logLevel: "silent",
  });
  return outputFiles[0].text;
}

async function withSandbox(work) {
  const sandbox = await startSandbox({ devices: DEVICES, autoApprove: true });
  const { origin, baseUrl, mcpUrl, apiToken, controlToken, ids } = sandbox;
  const closed = await startSandbox();
  await closed.close();
  const named = { pool: ids.pool, devices: DEVICES, silentOrigin: closed.origin };
  try {
    return await work({ origin, baseUrl, mcpUrl, apiToken, controlToken, ...named });
  } finally {
    await sandbox.close();
  }
}

function capture(command, args, options) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => resolve({ status: error.message, output }));
    child.on("close", (status, signal) => resolve({ status: status ?? signal, output }));
  });
}
