// The scenarios for servers, against the built sandbox: its MCP server with the fixtures of server.mjs, through a proxy
// that adds the token of a login, for the suite logs in nowhere; and one of its authorization servers.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

import { authorizedProxy } from "./authorized.mjs";
import { createConformanceServer } from "./server.mjs";
import { capture, inParallel, runSuite } from "./suite.mjs";

const root = dirname(dirname(import.meta.dirname));
const browser = join(import.meta.dirname, "browser.mjs");
/** Where the suite waits for the authorization response. */
const CALLBACK_PORT = 3017;
/** Every check passed, without a warning, and there was one. */
const PASSED = /^Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings$/m;

/** Every scenario for servers that the suite has: its name and the revisions that it is for, or `extension`. */
export async function serverScenarios() {
  const { stdout } = await runSuite(["list", "--server"]);
  const found = [...stdout.matchAll(/^ {2}- (\S+) \[(.+)\]$/gm)];
  return found.map(([, name, revisions]) => ({ name, revisions: revisions.split(",") }));
}

/** Scenarios that check nothing yet: the suite skips their only check, whatever the server does. */
const EMPTY = ["tasks-status-notifications"];
const isEmpty = ({ name }) => EMPTY.includes(name);

/** Runs the scenarios for MCP servers at each of their revisions. Returns the verdicts on each scenario. */
export async function judgeServers(scenarios) {
  const [left, run] = [scenarios.filter(isEmpty), scenarios.filter((scenario) => !isEmpty(scenario))];
  const revisions = [...new Set(run.flatMap((scenario) => scenario.revisions))].sort();
  const verdicts = new Map(run.map(({ name }) => [name, []]));
  await withSandbox({ mcpServer: createConformanceServer }, async (sandbox) => {
    const proxy = await authorizedProxy(sandbox.mcpUrl, await logIn(sandbox.mcpUrl));
    for (const revision of revisions) {
      const of = run.filter((scenario) => scenario.revisions.includes(revision));
      const at = revision === "extension" ? [] : ["--spec-version", revision];
      const judged = await inParallel(of, 2, async ({ name }) => {
        const { status, output } = await runSuite(["server", "--url", proxy.url, "--scenario", name, ...at]);
        const isPassed = report(`${name} ${revision}`, status === 0 && PASSED.test(output), output);
        verdicts.get(name).push(isPassed);
        return isPassed;
      });
      const passed = judged.filter(Boolean).length;
      console.log(`server, ${at.length === 0 ? "extensions" : `revision ${revision}`}: ${passed} of ${of.length}`);
    }
    proxy.close();
  });
  const names = left.map(({ name }) => name).join(", ");
  if (left.length > 0) console.log(`not run, for the suite has no check in it yet: ${names}`);
  return [...verdicts.values()];
}

/** The scenarios for authorization servers. */
export const AUTHORIZATION = ["authorization-server-metadata-endpoint", "authorization-code-grant"];

/** Runs them, in one process: the grant needs the metadata. Returns the verdict on each. */
export async function judgeAuthorizationServer() {
  const results = mkdtempSync(join(tmpdir(), "agentauth-conformance-"));
  try {
    return await withSandbox({ iss: true, clientMetadataDocuments: true }, async (sandbox) => {
      const issuer = sandbox.authUrl(sandbox.ids.pool);
      const { client_id, client_secret } = await register(issuer);
      const client = ["--client-id", client_id, "--client-secret", client_secret, "--resource", sandbox.mcpUrl];
      const flags = [...client, "--port", String(CALLBACK_PORT), "-o", results];
      let opened;
      const { status, output } = await runSuite(["authorization", "--url", issuer, ...flags], (printed) => {
        if (opened !== undefined) return;
        opened = /^http\S+\/authorize\?\S+$/m.exec(printed)?.[0];
        if (opened !== undefined) void capture(process.execPath, [browser, opened]);
      });
      return AUTHORIZATION.map((name) => report(name, status === 0 && isClean(results, name), output));
    });
  } finally {
    rmSync(results, { recursive: true, force: true });
  }
}

/** Whether every check of a scenario passed; a run of several scenarios counts no warnings. */
function isClean(results, name) {
  const folder = readdirSync(results).find((entry) => entry.includes(name)) ?? name;
  const checks = JSON.parse(readFileSync(join(results, folder, "checks.json"), "utf8"));
  return checks.length > 0 && checks.every(({ status }) => status === "SUCCESS");
}

/** Prints the verdict on a scenario, and what the suite printed where it failed. */
export function report(name, passed, output) {
  console.log(`${passed ? "pass" : "FAIL"}  ${name}`);
  if (!passed) console.log(output);
  return passed;
}

async function withSandbox(options, work) {
  const { startSandbox } = await import(pathToFileURL(join(root, "dist", "sandbox", "index.js")).href);
  const sandbox = await startSandbox({ devices: 1, autoApprove: true, ...options });
  try {
    return await work(sandbox);
  } finally {
    await sandbox.close();
  }
}

/** The token of a login with the built command line. */
async function logIn(url) {
  const home = mkdtempSync(join(tmpdir(), "agentauth-conformance-"));
  try {
    const flags = ["--login", "--browser", `"${process.execPath}" "${browser}"`];
    const args = [join(root, "bin", "agentauth.cjs"), "token", url, ...flags];
    const { status, output, stdout } = await capture(process.execPath, args, { ...process.env, AGENTAUTH_HOME: home });
    if (status !== 0) throw new Error(`agentauth token: ${output}`);
    return stdout.trim();
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function register(issuer) {
  const response = await fetch(`${issuer}/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_name: "suite", redirect_uris: [`http://127.0.0.1:${CALLBACK_PORT}/callback`] }),
  });
  return response.json();
}
