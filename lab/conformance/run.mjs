// Runs the official MCP conformance suite, one scenario by one: only then does every failed check, warning, timeout or exit
// code fail a scenario. The client authorization scenarios are run against the built CLI and against the official MCP SDK
// with our provider, those for servers against the built sandbox. Arguments select scenarios by name. A run of all of them
// fails where docs/conformance.md quotes other numbers than the last lines of its output.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { installPackages } from "../install.mjs";

import { AUTHORIZATION, judgeAuthorizationServer, judgeServers, report, serverScenarios } from "./servers.mjs";
import { inParallel, runSuite } from "./suite.mjs";
import { namesNoIssuer } from "./trusted.mjs";

const root = dirname(dirname(import.meta.dirname));

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
const BACKWARD_COMPATIBLE = ["2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"];
const SETS = [
  { name: "required", scenarios: REQUIRED, flags: [] },
  { name: "draft", scenarios: DRAFT, flags: [] },
  { name: "backward-compatible", scenarios: BACKWARD_COMPATIBLE, flags: [] },
  { name: "extensions", scenarios: EXTENSIONS, flags: [] },
  { name: "revision 2026-07-28", scenarios: [...REQUIRED, ...DRAFT], flags: ["--spec-version", "2026-07-28"] },
  {
    name: "@modelcontextprotocol/client 2.x with our provider",
    scenarios: [...REQUIRED, ...DRAFT, ...BACKWARD_COMPATIBLE, ...EXTENSIONS],
    flags: [],
    client: "sdk-client.mjs",
  },
];

if (!installPackages()) process.exit(1);
if (!existsSync(join(root, "dist", "cli", "main.cjs"))) {
  console.error("dist/ is missing: run npm run build");
  process.exit(1);
}

const wanted = process.argv.slice(2).map((name) => name.replace(/^auth\//, ""));
const isWanted = (name) => wanted.length === 0 || wanted.includes(name);
const servers = await serverScenarios();
const known = new Set([
  ...SETS.flatMap(({ scenarios }) => scenarios),
  ...servers.map(({ name }) => name),
  ...AUTHORIZATION,
]);
const unknown = wanted.find((name) => !known.has(name));
if (unknown !== undefined) {
  console.error(`there is no scenario ${unknown}`);
  process.exit(2);
}

const clients = [];
for (const { name, scenarios: all, flags, client } of SETS) {
  const scenarios = all.filter(isWanted);
  const verdicts = await inParallel(scenarios, 2, (scenario) => judge(scenario, flags, client));
  clients.push(countOf(verdicts));
  if (scenarios.length > 0) console.log(`${name}: ${textOf(clients.at(-1))}`);
}
const wantedServers = servers.filter(({ name }) => isWanted(name));
const byScenario = wantedServers.length > 0 ? await judgeServers(wantedServers) : [];
const authorization = countOf(AUTHORIZATION.some(isWanted) ? await judgeAuthorizationServer() : []);

const [required, draft, compatible, extensions, revision, provider] = clients;
const commandLine = sumOf([required, draft, compatible, extensions]);
const scenarios = countOf(byScenario.map((verdicts) => verdicts.every(Boolean)));
const runs = countOf(byScenario.flat());
/** What docs/conformance.md says in the last cells of its table. */
const cells = [
  `${textOf(required)} required, ${textOf(draft)} draft, ${textOf(compatible)} backward-compatible, ` +
    `${textOf(extensions)} extensions (${textOf(commandLine)}), and ${textOf(revision)} at revision 2026-07-28`,
  textOf(provider),
  `${textOf(scenarios)}, each at every revision that it is for: ${textOf(runs)}`,
  textOf(authorization),
];
const page = readFileSync(join(root, "docs", "conformance.md"), "utf8");
const misquoted = wanted.length > 0 ? [] : cells.filter((cell) => !page.includes(`| ${cell} |`));
if (wanted.length === 0) for (const cell of cells) console.log(`passed: ${cell}`);
for (const cell of misquoted) console.error(`docs/conformance.md does not say: ${cell}`);
const isPassed = [commandLine, revision, provider, runs, authorization].every(({ passed, all }) => passed === all);
process.exitCode = isPassed && misquoted.length === 0 ? 0 : 1;

function countOf(verdicts) {
  return { passed: verdicts.filter(Boolean).length, all: verdicts.length };
}

function sumOf(counts) {
  const sum = (name) => counts.reduce((total, count) => total + count[name], 0);
  return { passed: sum("passed"), all: sum("all") };
}

function textOf({ passed, all }) {
  return `${passed} of ${all}`;
}

async function judge(scenario, flags, client = "client.mjs") {
  const command = `exec "${process.execPath}" "${join(import.meta.dirname, client)}"`;
  const args = ["client", "--command", command, "--scenario", `auth/${scenario}`, "--timeout", "60000", ...flags];
  const { status, output } = await runSuite(args);
  const given = namesNoIssuer(`auth/${scenario}`) ? "(--trust-named-issuer: its context names no issuer)" : "";
  const passed = status === 0 && output.includes("OVERALL: PASSED");
  return report([scenario, flags.at(-1), given].filter(Boolean).join(" "), passed, output);
}
