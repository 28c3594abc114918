// MCP clients of other projects, each in its own processes, log in at the built sandbox, list its tools and call one: once
// where its MCP servers name no scopes, and once where they do. The browser that they open is lab/clients/browser.mjs.
// Arguments select clients by name. A client that cannot be installed fails like one that cannot log in; those of Python
// are left out, and named, where Python 3 or pip cannot install them.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { installPackages, modules, node } from "../install.mjs";

const folder = import.meta.dirname;
const root = dirname(dirname(folder));
const python = join(folder, ".python");
const requirements = join(folder, "requirements.txt");
const TIMEOUT_MS = 60_000;
const SANDBOXES = { "without scopes": {}, "with scopes": { scopesSupported: ["mcp"] } };

const CLIENTS = [
  { name: "sdk", package: "@modelcontextprotocol/sdk", run: library },
  { name: "client", package: "@modelcontextprotocol/client", run: library },
  { name: "client-auto", package: "@modelcontextprotocol/client", run: library },
  { name: "ai-sdk", package: "@ai-sdk/mcp", run: library },
  { name: "mcp-remote", package: "mcp-remote", run: library },
  { name: "mcpc", package: "@apify/mcpc", run: mcpc },
  { name: "mcporter", package: "mcporter", run: mcporter },
  { name: "inspector", package: "@modelcontextprotocol/inspector", run: inspector },
  { name: "python-mcp", requirement: "mcp", run: pythonLibrary },
  { name: "fastmcp", requirement: "fastmcp", run: pythonLibrary },
];

if (!existsSync(join(root, "dist", "sandbox", "index.js"))) {
  console.error("dist/ is missing: run npm run build");
  process.exit(1);
}
const { startSandbox } = await import(pathToFileURL(join(root, "dist", "sandbox", "index.js")).href);

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !CLIENTS.some((client) => client.name === name));
if (unknown !== undefined) {
  console.error(`there is no client ${unknown}`);
  process.exit(2);
}
const named = CLIENTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
if (!installPackages()) console.error("npm could not install every client: a missing one fails");
const problem = named.some(({ requirement }) => requirement) ? installPython() : undefined;
const selected = named.filter(({ requirement }) => problem === undefined || requirement === undefined);
const left = named.filter((client) => !selected.includes(client)).map(({ name }) => name);
let passed = 0;
for (const client of selected) {
  let ok = true;
  for (const title of Object.keys(SANDBOXES)) ok = (await judge(client, title)) && ok;
  if (ok) passed += 1;
}
if (left.length > 0) console.log(`NOT RUN: ${left.join(", ")}: ${problem}`);
console.log(`clients: ${passed} of ${selected.length}${left.length > 0 ? `, ${left.length} not run` : ""}`);
process.exitCode = passed === selected.length && named.length > 0 ? 0 : 1;

/** Why the clients of Python cannot be installed; undefined when they are. */
function installPython() {
  const installed = join(python, "requirements.txt");
  if (existsSync(installed) && readFileSync(installed, "utf8") === readFileSync(requirements, "utf8")) return undefined;
  rmSync(python, { recursive: true, force: true });
  const run = (command, ...args) => spawnSync(command, args, { encoding: "utf8" });
  const venv = run("python3", "-m", "venv", python);
  if (venv.status !== 0) return `python3 -m venv: ${(venv.error?.message ?? venv.stdout + venv.stderr).trim()}`;
  const pip = join(python, "bin", "pip");
  const install = run(pip, "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "-r", requirements);
  if (install.status !== 0) return `pip install: ${install.stderr.trim().split("\n").at(-1)}`;
  copyFileSync(requirements, installed);
  return undefined;
}

/** Runs a client with a new sandbox and a new home, and judges it by what it prints and by what the sandbox received. */
async function judge(client, title) {
  const row = `${client.name.padEnd(11)} ${versionOf(client).padEnd(7)} ${title.padEnd(14)}`;
  if (client.package !== undefined && (!existsSync(join(modules, client.package)) || !existsSync(node))) {
    console.log(`FAIL  ${row} cannot be installed: see the output of npm above`);
    return false;
  }
  const home = mkdtempSync(join(tmpdir(), "agentauth-client-"));
  const sandbox = await startSandbox({ devices: 1, autoApprove: "carol", ...SANDBOXES[title] });
  try {
    const result = await client.run({ name: client.name, url: sandbox.mcpUrl, env: environment(home) });
    const received = (path, operation) =>
      sandbox.requests.some(
        (entry) => entry.path.endsWith(path) && entry.operation === operation && entry.status === 200,
      );
    const steps = {
      login: received("/token", "authorization_code"),
      list: received("/mcp", "tools/list") && result.list?.includes('"whoami"'),
      call: received("/mcp", "tools/call") && /\bsubject\\?": ?\\?"carol\b/.test(result.call),
    };
    const shown = Object.entries(steps).map(([step, done]) => `${step} ${done ? "ok" : "FAILED"}`);
    const ok = Object.values(steps).every(Boolean);
    console.log(`${ok ? "pass" : "FAIL"}  ${row} ${shown.join(", ")}`);
    if (!ok)
      console.log(
        result.output,
        sandbox.requests.map(({ method, path, status }) => `${method} ${path} ${status}`),
      );
    return ok;
  } finally {
    await sandbox.close();
    rmSync(home, { recursive: true, force: true });
  }
}

function versionOf({ package: name, requirement }) {
  if (name === undefined) return new RegExp(`^${requirement}==(.+)$`, "m").exec(readFileSync(requirements, "utf8"))[1];
  const { packages } = JSON.parse(readFileSync(join(modules, "..", "package-lock.json"), "utf8"));
  return packages[`node_modules/${name}`]?.version ?? "unknown";
}

/** An empty home, so that a client uses no settings, keychain or browser of the user. */
function environment(home) {
  for (const opener of ["xdg-open", "open"]) {
    // In the background, as these programs do: some clients wait until they exit, and listen only then.
    writeFileSync(join(home, opener), `#!/bin/sh\n"${node}" "${join(folder, "browser.mjs")}" "$@" &\n`);
    chmodSync(join(home, opener), 0o755);
  }
  return {
    PATH: [home, dirname(node), process.env.PATH].join(delimiter),
    HOME: home,
    BROWSER: join(home, "xdg-open"),
    MCPC_HOME_DIR: join(home, "mcpc"),
    MCP_REMOTE_CONFIG_DIR: join(home, "mcp-remote"),
    // The Inspector logs in only if it is told that there is a user.
    MCP_AUTO_OPEN_ENABLED: "true",
    MCP_INSPECTOR_SECRET_STORE: "file",
    NO_COLOR: "1",
  };
}

async function library({ name, url, env }) {
  const { output, stdout } = await capture(node, [join(folder, "library.mjs"), name, url], env);
  return { output, list: stdout, call: stdout };
}

async function pythonLibrary({ name, url, env }) {
  const { output, stdout } = await capture(join(python, "bin", "python"), [join(folder, "library.py"), name, url], env);
  return { output, list: stdout, call: stdout };
}

async function inspector({ url, env }) {
  const program = join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js");
  const server = ["--cli", "--transport", "http", "--server-url", url, "--format", "json"];
  const callback = ["--callback-url", "http://127.0.0.1:0/oauth/callback"];
  const run = (...args) => capture(node, [program, ...server, ...callback, ...args], env);
  const list = await run("--method", "tools/list");
  const call = await run("--method", "tools/call", "--tool-name", "whoami");
  return resultOf(list, call, [list, call]);
}

async function mcpc({ url, env }) {
  const program = join(modules, "@apify", "mcpc", "bin", "mcpc");
  const run = (...args) => capture(node, [program, ...args], env);
  // It takes the end of its input for a cancelled login, and input to a call for the arguments.
  const login = await capture(node, [program, "login", url], env, "pipe");
  const connect = await run("connect", url, "@sandbox");
  const list = await run("@sandbox", "tools-list", "--json");
  const call = await run("@sandbox", "tools-call", "whoami", "--json");
  // The session is a process in the background.
  const close = await run("close", "@sandbox");
  return resultOf(list, call, [login, connect, list, call, close]);
}

async function mcporter({ url, env }) {
  const run = (...args) => capture(node, [join(modules, "mcporter", "dist", "cli.js"), ...args], env);
  const login = await run("auth", url, "--allow-http");
  const list = await run("list", url, "--allow-http", "--json");
  const call = await run("call", `${url}.whoami`, "--allow-http");
  return resultOf(list, call, [login, list, call]);
}

function resultOf(list, call, all) {
  return { list: list.stdout, call: call.stdout, output: all.map(({ output }) => output).join("\n") };
}

function capture(command, args, env, stdin = "ignore") {
  return new Promise((resolve) => {
    const stdio = [stdin, "pipe", "pipe"];
    const child = spawn(command, args, { env, cwd: env.HOME, stdio, timeout: TIMEOUT_MS });
    let [stdout, output] = ["", ""];
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
      output += chunk;
    });
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => resolve({ stdout: "", output: error.message }));
    child.on("exit", () => child.stdin?.destroy());
    child.on("close", (status, signal) =>
      // What a program prints before it fails is no result.
      resolve({ stdout: status === 0 ? stdout : "", output: `${output}\n${args.join(" ")}: ${status ?? signal}` }),
    );
  });
}
