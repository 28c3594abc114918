import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { describe, expect } from "vitest";
import { systemClock } from "../../src/http/deadline.js";
import { plant, shownSecrets, watch } from "../helpers/canaries.js";
import { collect, runCli, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { testbedTest } from "../helpers/testbed-test.js";
import { unsafeCharacters } from "../helpers/unsafe.js";

const it = testbedTest({ devices: 5, autoApprove: true });

/** A run that prints a text, watched as the program is. */
async function sayer(text: string, args: readonly string[], home = temporaryFolder()): Promise<string[]> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  watch({ stdout, stderr }, args, { AGENTAUTH_HOME: home });
  const said = collect(stderr);
  stderr.end(`${text}\n`);
  await finished(stderr);
  expect(said()).toBe(`${text}\n`);
  return shownSecrets();
}

describe("the check that runs after each test", () => {
  it("knows what any server of the process returned and received", async () => {
    const { origin } = await startServer((response) => {
      response.setHeader("location", "https://client.example/?code=code-of-a-canary");
      sendJson(response, { deeper: [{ refresh_token: "refresh-of-a-canary" }] });
    });
    const body = new URLSearchParams({ code_verifier: "verifier-of-a-canary" });
    await (await fetch(origin, { method: "POST", body })).text();
    for (const [value, name] of [
      ["code", "code"],
      ["refresh", "refresh_token"],
      ["verifier", "code_verifier"],
    ]) {
      const shown = await sayer(`it is ${value}-of-a-canary!`, ["status"]);
      expect(shown).toEqual([`${name} on stderr of agentauth status`]);
    }
    expect(await sayer("nothing of the kind", ["status"])).toEqual([]);
  });

  it("looks into every file but those that are there for secrets", async () => {
    plant("access_token", "access-of-a-canary");
    const home = temporaryFolder();
    for (const folder of ["grants", "claims"]) {
      mkdirSync(join(home, folder));
      writeFileSync(join(home, folder, "x.json"), '{"a":"access-of-a-canary"}');
    }
    expect(await sayer("", ["status"], home)).toEqual([expect.stringMatching(/^access_token in the file claims/)]);
  });
});

describe("a bug in agentauth", () => {
  const bug = (token: string) =>
    Object.assign(new Error(`\u001b[31mbug with ${token}`, { cause: new Error(`deeper ${token}`) }), { token });

  it.for<[string, (token: string) => unknown]>([
    ["an error", bug],
    ["a value that is no error", (token) => ({ toString: () => bug(token), token })],
  ])("is reported without the secrets of the run: %s", async ([_what, thrown], { testbed }) => {
    const token = testbed.sandbox.apiToken;
    const clock = {
      ...systemClock,
      epoch: () => {
        throw thrown(token);
      },
    };
    for (const flags of [[], ["--debug"], ["-o", "ndjson", "-v"]]) {
      const { code, stderr } = await testbed.run([...testbed.devices, ...flags], { clock });
      expect([code, stderr]).toEqual([1, expect.stringContaining("a bug in agentauth")]);
      expect(stderr).not.toContain(token);
      expect(unsafeCharacters(stderr, "\n")).toEqual([]);
    }
  });
});

describe("every command with --debug", () => {
  const env = {
    AGENTAUTH_CLIENT_SECRET: "canary-client-secret",
    AGENTAUTH_ID_TOKEN: "canary-id-token",
    HTTPS_PROXY: "http://person:canary-password@127.0.0.1:9",
  };
  const { account, pool } = { account: "acc", pool: "pool" };

  it.for([
    ["devices", "list", "--pool", pool],
    ["devices", "get", "dev", "--pool", pool],
    ["domains", "list", "--account", account],
    ["api", "GET", "/api/v1/device", "-f", "pool_id=x"],
    ["config", "list"],
    ["config", "set", "api_token", "canary-typed-token"],
    ["profile", "list"],
    ["doctor", "-o", "json"],
    ["doctor"],
    ["status", "--all"],
    ["sandbox", "status"],
    ["sandbox", "fault", "503"],
    ["discover", "https://person:canary-password@mcp.example/mcp"],
    ["token", "https://mcp.invalid/mcp", "--client-id", "x"],
    ["mcp", "tools", "https://mcp.invalid/mcp"],
  ])("shows no secret of its surroundings: %s %s", async ([...args], { testbed }) => {
    const { stdout, stderr } = await testbed.run([...args, "--debug", "--timeout", "3", "--retries", "0"], {
      env: { ...env, AGENTAUTH_HOME: temporaryFolder() },
    });
    expect(stdout + stderr).not.toMatch(/canary/);
    expect(stdout + stderr).not.toContain(testbed.sandbox.apiToken);
  });

  it("and the demo, which has secrets of its own", async () => {
    const { code, stdout, stderr } = await runCli(["demo", "--debug"]);
    expect(code).toBe(0);
    expect(stdout + stderr).not.toMatch(/sandbox_[\w-]{20}|eyJ[\w-]{20}/);
  });
});
