import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../src/sandbox/sandbox.js";
import { LOGIN_FLAGS } from "./flow/support.js";
import { runCli } from "./helpers/cli.js";
import { compileExample } from "./helpers/example.js";
import { temporaryFolder } from "./helpers/folder.js";

const folder = fileURLToPath(new URL("../examples/", import.meta.url));

async function run(name: string, args: string[] = [], env: Record<string, string> = {}): Promise<string[]> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [await compileExample(name), ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], ...env },
  });
  expect(stderr).toBe("");
  return stdout.trimEnd().split("\n");
}

/** The report of node:test says that both tests of a file passed. */
async function passes(name: string): Promise<void> {
  expect(await run(name)).toEqual(expect.arrayContaining([expect.stringMatching(/^(#|ℹ) pass 2$/)]));
}

const EXAMPLES: Record<string, (name: string) => Promise<void>> = {
  async "list-devices.ts"(name) {
    await using sandbox = await startSandbox({ devices: 120 });
    const env = { AGENTAUTH_BASE_URL: sandbox.baseUrl, AGENTAUTH_API_TOKEN: sandbox.apiToken };
    const lines = await run(name, [sandbox.ids.pool], env);
    const listed = lines.map((line) => line.split("\t")[0]);
    const there = Array.from({ length: 120 }, (_, at) => sandbox.data.device(sandbox.ids.pool, at)?.id);
    expect(listed.toSorted()).toEqual(there.toSorted());
    await expect(run(name, ["pool_unknown"], env)).rejects.toMatchObject({ code: 1, stderr: /^not_found: / });
  },

  async "token-in-script.ts"(name) {
    await using sandbox = await startSandbox({ devices: 0, autoApprove: true });
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await expect(run(name, [sandbox.mcpUrl], env)).rejects.toMatchObject({
      code: 1,
      stderr: `log in first: agentauth login ${sandbox.mcpUrl}\n`,
    });
    const { code } = await runCli(["token", sandbox.mcpUrl, ...LOGIN_FLAGS], { env });
    expect(code).toBe(0);
    const [first, second] = await run(name, [sandbox.mcpUrl], env);
    expect(first).toMatch(/^a token for .+, valid until \d{4}-/);
    expect(second).toBe("HTTP 200");
  },

  async "machine-grant-in-ci.ts"(name) {
    await using sandbox = await startSandbox({ devices: 0, machineGrants: true });
    if (sandbox.machine === undefined) throw new Error("the sandbox has no clients for machine grants");
    const { secretClient, issuer } = sandbox.machine;
    const args = [sandbox.mcpUrl, secretClient.clientId, issuer];
    const home = { AGENTAUTH_HOME: temporaryFolder() };
    const env = { ...home, AGENTAUTH_CLIENT_SECRET: secretClient.clientSecret };
    expect(await run(name, args, env)).toEqual([`a token of ${issuer}`]);
    const wrong = { ...home, AGENTAUTH_CLIENT_SECRET: "wrong" };
    await expect(run(name, args, wrong)).rejects.toMatchObject({ code: 1, stderr: /^invalid_client: / });
  },

  "unit-test-nock.ts": passes,
  "unit-test-msw.ts": passes,

  async "resume-after-error.ts"(name) {
    const lines = await run(name);
    const breaks = lines.slice(0, -1);
    expect(breaks.length).toBeGreaterThanOrEqual(2);
    // Which pages break depends on how many were requested ahead of an error.
    for (const line of breaks) expect(line).toMatch(/^connection_reset after (\d+) devices, resuming at offset \1$/);
    expect(lines.at(-1)).toBe("500 devices, 500 of them distinct");
  },

  async "with-faults.ts"(name) {
    expect(await run(name)).toEqual([
      "status: fired 1 times, correct count",
      "status: fired 1 times, correct count",
      "truncated-json: fired 1 times, correct count",
      "extra-fields: fired 7 times, correct count",
    ]);
  },
};

describe("the examples", () => {
  it("are all run here", async () => {
    // Those of resource servers are run in resource-server/examples.process.test.ts, those of the MCP SDKs in
    // mcp-sdk-examples.process.test.ts, the web app in web-app.process.test.ts, the page in connect-page.process.test.ts, the fleet
    // in fleet-example.process.test.ts; the dashboard of grafana is read in telemetry/.
    const isElsewhere = /^(?:(?:resource-server|mcp-sdk)-|(?:web-app|connect-page|fleet|grafana)$)/;
    const names = (await readdir(folder)).filter((name) => !isElsewhere.test(name));
    expect(names.toSorted()).toEqual(Object.keys(EXAMPLES).toSorted());
  });

  it.each(Object.entries(EXAMPLES))("%s does what it says", (name, check) => check(name));
});
