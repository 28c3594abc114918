// Runs the official MCP conformance suite, one scenario by one: only then does every failed check, warning, timeout or exit
// code fail a scenario. The client authorization scenarios are run against the built CLI and against the official MCP SDK
// with our provider, those for servers against the built sandbox. Arguments select scenarios by name.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import {
  AUTHORIZATION,
  judgeAuthorizationServer,
  judgeServers,
  report,
  serverScenarios,
} from "../conformance/servers.mjs";
import { inParallel, installSuite, runSuite } from "../conformance/suite.mjs";
import { namesNoIssuer } from "../conformance/trusted.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

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

installSuite();
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

let failed = 0;
for (const { name, scenarios: all, flags, client } of SETS) {
  const scenarios = all.filter(isWanted);
  if (scenarios.length === 0) continue;
  const passed = (await inParallel(scenarios, 2, (scenario) => judge(scenario, flags, client))).filter(Boolean).length;
  failed += scenarios.length - passed;
  console.log(`${name}: ${passed} of ${scenarios.length}`);
}
const wantedServers = servers.filter(({ name }) => isWanted(name));
if (wantedServers.length > 0) failed += await judgeServers(wantedServers);
if (AUTHORIZATION.some(isWanted)) failed += await judgeAuthorizationServer();
process.exitCode = failed === 0 ? 0 : 1;

async function judge(scenario, flags, client = "client.mjs") {
  const command = `exec "${process.execPath}" "${join(root, "conformance", client)}"`;
  const args = ["client", "--command", command, "--scenario", `auth/${scenario}`, "--timeout", "60000", ...flags];
  const { status, output } = await runSuite(args);
  const given = namesNoIssuer(`auth/${scenario}`) ? "(--trust-named-issuer: its context names no issuer)" : "";
  const passed = status === 0 && output.includes("OVERALL: PASSED");
  return report([scenario, flags.at(-1), given].filter(Boolean).join(" "), passed, output);
}
