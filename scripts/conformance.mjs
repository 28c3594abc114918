// Runs the client authorization scenarios of the official MCP conformance suite against the built CLI, one by one: only
// then does every failed check, warning, timeout or exit code fail a scenario. Arguments select scenarios by name.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { namesNoIssuer } from "../conformance/trusted.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, "conformance");
const node = join(folder, "node_modules", "node", "bin", "node");
const suite = join(folder, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js");

const REQUIRED = [
  "metadata-default",
  "metadata-var1",
  "metadata-var2",
  "metadata-var3",
  "basic-cimd",
  "scope-from-www-authenticate",
  "scope-from-scopes-supported",
  "scope-omitted-when-undefined",
  "scope-step-up",
  "scope-retry-limit",
  "token-endpoint-auth-basic",
  "token-endpoint-auth-post",
  "token-endpoint-auth-none",
  "pre-registration",
];
const DRAFT = [
  "resource-mismatch",
  "offline-access-scope",
  "offline-access-not-supported",
  "authorization-server-migration",
  "iss-supported",
  "iss-not-advertised",
  "iss-supported-missing",
  "iss-wrong-issuer",
  "iss-unexpected",
  "iss-normalized",
  "metadata-issuer-mismatch",
];
const EXTENSIONS = [
  "client-credentials-basic",
  "client-credentials-jwt",
  "enterprise-managed-authorization",
  "wif-jwt-bearer",
  "dpop",
  "dpop-nonce",
];
const SETS = [
  { name: "required", scenarios: REQUIRED, flags: [] },
  { name: "draft", scenarios: DRAFT, flags: [] },
  {
    name: "backward-compatible",
    scenarios: ["2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"],
    flags: [],
  },
  { name: "extensions", scenarios: EXTENSIONS, flags: [] },
  { name: "revision 2026-07-28", scenarios: [...REQUIRED, ...DRAFT], flags: ["--spec-version", "2026-07-28"] },
];

if (!existsSync(suite) || !existsSync(node)) {
  const installed = spawnSync("npm", ["ci", "--prefix", folder], { stdio: "inherit" });
  if (installed.status !== 0) process.exit(installed.status ?? 1);
}
if (!existsSync(join(root, "dist", "cli", "main.js"))) {
  console.error("dist/ is missing: run npm run build");
  process.exit(1);
}

const wanted = process.argv.slice(2).map((name) => name.replace(/^auth\//, ""));
const unknown = wanted.find((name) => !SETS.some(({ scenarios }) => scenarios.includes(name)));
if (unknown !== undefined) {
  console.error(`there is no scenario ${unknown}`);
  process.exit(2);
}

let failed = 0;
for (const { name, scenarios: all, flags } of SETS) {
  const scenarios = all.filter((scenario) => wanted.length === 0 || wanted.includes(scenario));
  if (scenarios.length === 0) continue;
  const passed = (await inParallel(scenarios, 2, (scenario) => judge(scenario, flags))).filter(Boolean).length;
  failed += scenarios.length - passed;
  console.log(`${name}: ${passed} of ${scenarios.length}`);
}
process.exitCode = failed === 0 ? 0 : 1;

async function judge(scenario, flags) {
  const client = `exec "${process.execPath}" "${join(folder, "client.mjs")}"`;
  const args = [suite, "client", "--command", client, "--scenario", `auth/${scenario}`, "--timeout", "60000", ...flags];
  const { status, output } = await capture(node, args);
  const passed = status === 0 && output.includes("OVERALL: PASSED");
  const given = namesNoIssuer(`auth/${scenario}`) ? "(--trust-named-issuer: its context names no issuer)" : "";
  console.log(`${passed ? "pass" : "FAIL"}  ${[scenario, flags.at(-1), given].filter(Boolean).join(" ")}`);
  if (!passed) console.log(output);
  return passed;
}

function capture(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("close", (status) => resolve({ status, output }));
  });
}

async function inParallel(items, width, work) {
  const results = [];
  const queue = [...items.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}
