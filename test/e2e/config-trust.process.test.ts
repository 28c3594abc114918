import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { BIN, cleanEnv, collect, runProcess, startCliSandbox, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 3 });

/** A folder such as a hostile repository, which would send the token to its own address. */
function hostileFolder(address: string): string {
  const folder = temporaryFolder();
  const settings = {
    schema: 1,
    profile: "default",
    base_url: address,
    profiles: { default: { base_url: address, auth_header: "X-Stolen", store: "file", output: "json" } },
  };
  const text = JSON.stringify(settings);
  const lines = `AGENTAUTH_BASE_URL=${address}\nAGENTAUTH_API_TOKEN=other\nAGENTAUTH_HOME=${folder}\nHTTPS_PROXY=${address}\n`;
  mkdirSync(join(folder, ".agentauth"));
  mkdirSync(join(folder, ".config", "agentauth"), { recursive: true });
  for (const name of [
    ...["config.json", ".agentauth/config.json", ".config/agentauth/config.json", ".agentauthrc", ".agentauthrc.json"],
    ...[".agentauth.json", "agentauth.json", "agentauth.config.json"],
  ]) {
    writeFileSync(join(folder, name), text);
  }
  writeFileSync(join(folder, "agentauth.config.js"), `throw new Error("this file was run");`);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ agentauth: settings, proxy: address }));
  for (const name of [".env", ".env.local", ".agentauth.env"]) writeFileSync(join(folder, name), lines);
  writeFileSync(join(folder, ".npmrc"), `proxy=${address}\nhttps-proxy=${address}\n`);
  return folder;
}

describe("a folder that belongs to another user", () => {
  it("sets nothing: neither where requests go, nor how, nor what they carry", async ({ testbed }) => {
    const thief = await startServer((response) => sendJson(response, {}));
    const cwd = hostileFolder(thief.origin);
    const listed = await runProcess([...testbed.devices, "-o", "id"], { cwd, env: testbed.env });
    expect([listed.code, listed.stdout.split("\n").length, listed.stderr]).toEqual([0, 4, ""]);
    const settings = await runProcess(["config", "list", "-o", "json"], { cwd, env: testbed.env });
    expect(JSON.parse(settings.stdout)).toMatchObject([
      { key: "profile", value: "default" },
      { key: "base_url", value: testbed.sandbox.baseUrl, source: "AGENTAUTH_BASE_URL" },
      { key: "api_token", source: "AGENTAUTH_API_TOKEN" },
      { key: "auth_header", source: "default" },
      { key: "sorting", source: "default" },
      { key: "issuer" },
      { key: "account" },
      { key: "domain" },
      { key: "pool" },
      { key: "output" },
      { key: "store", source: "default" },
      { key: "store_fallback", source: "default" },
      { key: "store_url" },
      { key: "store_keys" },
      { key: "store_takeover" },
      { key: "store_tenant" },
      { key: "client_cert" },
      { key: "client_key" },
      { key: "use_system_ca", source: "default" },
      { key: "client_metadata_url" },
      { key: "audit" },
    ]);
    expect(thief.requests).toEqual([]);
  });

  it("is not where a service is looked for when none is set", async () => {
    const thief = await startServer((response) => sendJson(response, {}));
    const run = await runProcess(["devices", "list", "--pool", "p"], {
      cwd: hostileFolder(thief.origin),
      env: { AGENTAUTH_API_TOKEN: "a-token-of-somebody" },
    });
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining("no service is configured")]);
    expect(thief.requests).toEqual([]);
  });
});

describe("the sandbox and the real world", () => {
  it("do not get each other's tokens, and nothing is sent", async () => {
    const sandbox = await startCliSandbox();
    const { base_url, api_token, pool_id } = sandbox.ready;
    const list = ["devices", "list", "--pool", pool_id, "-o", "id", "--limit", "1"];
    const sandboxOutside = await sandbox.run([...list, "--base-url", "https://agentauth.example"], {
      env: { AGENTAUTH_API_TOKEN: api_token },
    });
    expect([sandboxOutside.code, sandboxOutside.stdout]).toEqual([4, ""]);
    expect(sandboxOutside.stderr).toBe(
      `error: the API token (AGENTAUTH_API_TOKEN) is a sandbox's, and "https://agentauth.example" (--base-url) is no sandbox\n` +
        "hint: give the token of this service, or use the sandbox with --profile sandbox\n",
    );
    const real = { AGENTAUTH_API_TOKEN: "a-token-of-the-real-service" };
    for (const args of [
      [...list, "--profile", "sandbox"],
      [...list, "--base-url", base_url],
    ]) {
      const inside = await sandbox.run(args, { env: real });
      expect([inside.code, inside.stdout]).toEqual([4, ""]);
      expect(inside.stderr).toContain("the API token (AGENTAUTH_API_TOKEN) is not the sandbox's");
      expect(inside.stderr).toContain("hint: unset AGENTAUTH_API_TOKEN for the sandbox");
      expect(inside.stderr).not.toContain(real.AGENTAUTH_API_TOKEN);
    }
    expect((await sandbox.run([...list, "--profile", "sandbox"])).code).toBe(0);
    const both = await sandbox.run([...list, "--base-url", base_url], { env: { AGENTAUTH_API_TOKEN: api_token } });
    expect(both.code).toBe(0);
    await sandbox.stop();
  });
});

describe("an identifier", () => {
  it.for([
    ["a line break", "a\\nb"],
    ["a control character", "a\\033[31m"],
    ["what is no UTF-8", "a\\377b"],
  ])("with %s in it is refused, and nothing is sent", async ([_what, printf], { testbed }) => {
    const before = testbed.sandbox.requests.length;
    for (const words of ['devices list --pool "$id"', `devices get "$id" --pool p`, 'domains list --account "$id"']) {
      const script = `id="$(printf '${printf}x')"; exec "$0" "$1" ${words}`;
      const child = spawn("sh", ["-c", script, process.execPath, BIN], { env: cleanEnv(testbed.env), stdio: "pipe" });
      const err = collect(child.stderr);
      const [code] = (await once(child, "close")) as [number | null];
      expect([code, err()]).toEqual([2, expect.stringContaining("has a control character or broken UTF-8 in it")]);
    }
    expect(testbed.sandbox.requests.length).toBe(before);
  });
});
