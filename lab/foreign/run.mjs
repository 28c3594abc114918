// The built agentauth against programs of others: issuers, MCP servers, and what is between them. Each row is a login, its
// token, a list of tools, a call, a refresh and a logout, first by the command line, then by the package.
//
//   npm run foreign                      every row; writes results.json, from which docs/servers.md is made
//   npm run foreign -- --quick           those of .ci/run
//   npm run foreign -- cloudflare        those whose names begin so
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { installPackages } from "../install.mjs";
import { folder, modules } from "./peer.mjs";

const root = join(folder, "..", "..");
const program = join(root, "bin", "agentauth.cjs");
const node = join(modules, "node", "bin", "node");
const START_MS = 120_000;
const STEP_MS = 60_000;

const args = process.argv.slice(2);
const names = args.filter((word) => !word.startsWith("-"));
const all = await readRows();
const unknown = names.find((name) => !all.some((row) => row.name.startsWith(name)));
if (unknown !== undefined || args.some((word) => word.startsWith("-") && word !== "--quick")) {
  console.error(`usage: npm run foreign -- [--quick] [name…]; names: ${all.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
if (!existsSync(join(root, "dist", "index.js"))) {
  console.error("dist/ is missing: run npm run build");
  process.exit(1);
}
if (!installPackages(folder)) process.exit(1);
const selected = all
  .filter(({ quick }) => quick || !args.includes("--quick"))
  .filter((row) => names.length === 0 || names.some((name) => row.name.startsWith(name)));
const counts = { passed: 0, failed: 0, skipped: 0 };
const results = [];
for (const row of selected) {
  const judged = row.check === undefined ? await judge(row) : judgeCheck(row);
  counts[judged.result] += 1;
  if (row.check === undefined) results.push({ name: row.name, title: row.title, ...judged });
}
if (selected.length === all.length) saveResults();
console.log(`foreign: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;

/** Stores what a whole run found. */
function saveResults() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const saved = { date: new Date().toISOString().slice(0, 10), agentauth: version, rows: results };
  writeFileSync(join(folder, "results.json"), `${JSON.stringify(saved, undefined, 2)}\n`);
}

async function readRows() {
  const files = readdirSync(join(folder, "peers")).filter((name) => name.endsWith(".mjs"));
  const read = async (name) => {
    const file = join(folder, "peers", name);
    return (await import(pathToFileURL(file).href)).rows.map((row) => ({ ...row, file }));
  };
  return (await Promise.all(files.sort().map(read))).flat();
}

/** Runs a row that is no server, and prints its line. */
function judgeCheck({ name, check }) {
  const { passed, version, output } = check();
  console.log(`${passed ? "pass" : "FAIL"}  ${name.padEnd(24)} ${version}${passed ? "" : `\n${output}`}`);
  return { result: passed ? "passed" : "failed" };
}

/** Runs a row, and prints its line. Returns its result, and the version or the reason. */
async function judge(row) {
  const peer = spawn(node, [join(folder, "serve.mjs"), row.file, row.name], { stdio: ["pipe", "pipe", "pipe"] });
  const output = [];
  // Where it has ended by itself.
  peer.stdin.on("error", () => {});
  peer.stderr.on("data", (chunk) => output.push(String(chunk)));
  const exited = once(peer, "exit");
  try {
    const [line] = await Promise.race([
      once(createInterface({ input: peer.stdout }), "line", { signal: AbortSignal.timeout(START_MS) }),
      exited.then(() => [JSON.stringify({ failed: "it did not start" })]),
    ]);
    const { notHere, failed, ...found } = JSON.parse(line);
    if (notHere !== undefined) {
      console.log(`SKIP  ${row.name.padEnd(24)} ${notHere}`);
      return { result: "skipped", reason: notHere };
    }
    if (failed !== undefined) throw new Error(failed);
    const problems = [];
    for (const [kind, user] of Object.entries({ "command line": byCommands, package: byPackage })) {
      const home = makeHome(row);
      const done = [];
      await user(found, home, (step, isRight, shown) => {
        if (!isRight) throw new Error(`${step}: ${shown}`);
        done.push(step);
      }).catch((error) => problems.push(`${kind}, after ${done.join(", ") || "nothing"}: ${error.message}`));
      rmSync(home, { recursive: true, force: true });
    }
    console.log(`${problems.length === 0 ? "pass" : "FAIL"}  ${row.name.padEnd(24)} ${found.version}`);
    if (problems.length > 0) console.log([...problems, ...output].join("\n"));
    return { result: problems.length === 0 ? "passed" : "failed", version: found.version };
  } catch (error) {
    console.log(`FAIL  ${row.name.padEnd(24)} ${error.message}\n${output.join("")}`);
    return { result: "failed" };
  } finally {
    peer.stdin.end();
    const late = setTimeout(() => peer.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(late);
  }
}

/** An empty home, with the browser that programs open. */
function makeHome({ file, name }) {
  const home = mkdtempSync(join(tmpdir(), "agentauth-foreign-"));
  const browser = join(home, "browser");
  writeFileSync(
    browser,
    `#!/bin/sh\nexec "${node}" "${join(folder, "browser.mjs")}" "${file}" "${name}" "$@" >>"${browser}.log" 2>&1\n`,
  );
  writeFileSync(`${browser}.log`, "");
  chmodSync(browser, 0o755);
  return home;
}

async function byCommands({ url, tool, says, revoked = null, env, setup = {} }, home, check) {
  const { client, redirectPort, policy = {} } = setup;
  const secret = client?.clientSecret === undefined ? {} : { AGENTAUTH_CLIENT_SECRET: client.clientSecret };
  const run = (...words) => capture(process.execPath, [program, ...words], home, { ...env, ...secret });
  const flags = [
    ...(client === undefined ? [] : ["--client-id", client.clientId, "--issuer", client.issuer]),
    ...(redirectPort === undefined ? [] : ["--redirect-port", String(redirectPort)]),
    ...Object.keys(policy).map((name) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`),
  ];
  const login = await run("login", url, "--login-timeout", "30", ...flags);
  check("login", login.status === 0, login.output);
  const token = await run("token", url);
  check("token", token.status === 0 && token.stdout.trim() !== "", token.output);
  const list = await run("mcp", "tools", url, "-o", "id");
  check("list", list.status === 0 && list.stdout.split("\n").includes(tool), list.output);
  const call = await run("mcp", "call", url, tool);
  check("call", call.status === 0 && call.stdout.includes(says), call.output);
  const refresh = await run("token", url, "--force-refresh");
  check("refresh", refresh.status === 0 && refresh.stdout !== token.stdout, refresh.output);
  const again = await run("mcp", "call", url, tool);
  check("call again", again.status === 0 && again.stdout.includes(says), again.output);
  const logout = await run("logout", url, "--json");
  const isRight = logout.status === 0 && JSON.parse(logout.stdout)[0]?.revoked === revoked;
  check("logout", isRight, logout.output);
  const after = await run("token", url, "--no-login");
  check("no token after it", after.status === 4 && after.stdout === "", after.output);
}

async function byPackage({ url, tool, says, revoked = null, isBalanced = false, env, setup = {} }, home, check) {
  const options = JSON.stringify({ ...setup, usesOwnFetch: isBalanced || env !== undefined });
  const words = [join(folder, "package-user.mjs"), url, tool, options];
  const { stdout, output } = await capture(process.execPath, words, home, env);
  const lines = stdout.split("\n").filter(Boolean);
  const steps = Object.fromEntries(lines.map((line) => JSON.parse(line)).map(({ step, result }) => [step, result]));
  check("login", steps.login === url, output);
  check("token", steps.token?.length > 0, output);
  check("list", steps.list?.split("\n").includes(tool), output);
  check("call", steps.call?.includes(says), output);
  check("refresh", steps.refresh?.length > 0 && steps.refresh !== steps.token, output);
  check("call again", steps["call again"]?.includes(says), output);
  check("logout", JSON.parse(steps.logout ?? "{}").revoked === revoked, output);
}

/** Runs a program with an empty environment, and a home of its own. */
async function capture(command, words, home, added = {}) {
  const env = { PATH: process.env.PATH, HOME: home, BROWSER: join(home, "browser"), NO_COLOR: "1", ...added };
  const child = spawn(command, words, { env, cwd: home, stdio: ["ignore", "pipe", "pipe"], timeout: STEP_MS });
  let [stdout, output] = ["", `${words.slice(1, 4).join(" ")}\n`];
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  const [status, signal] = await once(child, "close");
  // A browser's output goes nowhere.
  const browser = readFileSync(join(home, "browser.log"), "utf8");
  return { status, stdout, output: `${output}exit code ${status ?? signal}\n${browser}` };
}
