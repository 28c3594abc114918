import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Bench,
  BIN,
  cleanEnv,
  collect,
  runCli,
  startBench,
  startCliSandbox,
  temporaryFolder,
} from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";

let bench: Bench;

beforeAll(async () => {
  bench = await startBench({ devices: 3 });
});
afterAll(() => bench.sandbox.close());

/** A folder as somebody else's repository may be, which would send the token to an address of its own. */
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
    "config.json",
    ".agentauth/config.json",
    ".config/agentauth/config.json",
    ".agentauthrc",
    ".agentauthrc.json",
    ".agentauth.json",
    "agentauth.json",
    "agentauth.config.json",
  ]) {
    writeFileSync(join(folder, name), text);
  }
  writeFileSync(join(folder, "agentauth.config.js"), `throw new Error("this file was run");`);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ agentauth: settings, proxy: address }));
  for (const name of [".env", ".env.local", ".agentauth.env"]) writeFileSync(join(folder, name), lines);
  writeFileSync(join(folder, ".npmrc"), `proxy=${address}\nhttps-proxy=${address}\n`);
  return folder;
}

describe("a folder that belongs to somebody else", () => {
  it("sets nothing: neither where requests go, nor how, nor what they carry", async () => {
    const thief = await startServer((response) => sendJson(response, {}));
    const cwd = hostileFolder(thief.origin);
    const listed = await bench.run([...bench.devices, "-o", "id"], { cwd });
    expect([listed.code, listed.stdout.split("\n").length, listed.stderr]).toEqual([0, 4, ""]);
    const settings = await bench.run(["config", "list", "-o", "json"], { cwd });
    expect(JSON.parse(settings.stdout)).toMatchObject([
      { key: "profile", value: "default" },
      { key: "base_url", value: bench.sandbox.baseUrl, source: "AGENTAUTH_BASE_URL" },
      { key: "api_token", source: "AGENTAUTH_API_TOKEN" },
      { key: "auth_header", source: "default" },
      { key: "issuer" },
      { key: "account" },
      { key: "domain" },
      { key: "pool" },
      { key: "output" },
      { key: "store", source: "default" },
      { key: "store_fallback", source: "default" },
      { key: "client_cert" },
      { key: "client_key" },
    ]);
    expect(thief.requests).toEqual([]);
  });

  it("is not where a service is looked for when none is set", async () => {
    const thief = await startServer((response) => sendJson(response, {}));
    const run = await runCli(["devices", "list", "--pool", "p"], {
      cwd: hostileFolder(thief.origin),
      env: { AGENTAUTH_API_TOKEN: "a-token-of-somebody" },
    });
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining("no service is configured")]);
    expect(thief.requests).toEqual([]);
  });
});

describe("a profile's token", () => {
  it("is not drawn out by an address from a flag or from the environment", async () => {
    const thief = await startServer((response) => sendJson(response, {}));
    const home = temporaryFolder();
    const run = (args: string[], more: { stdin?: string; env?: Record<string, string> } = {}) =>
      runCli(args, { ...more, env: { AGENTAUTH_HOME: home, ...more.env } });
    await run(["config", "set", "base_url", bench.sandbox.baseUrl]);
    await run(["config", "set", "api_token", "-"], { stdin: bench.sandbox.apiToken });
    expect((await run([...bench.devices, "-o", "id"])).code).toBe(0);
    for (const drawn of [
      await run([...bench.devices, "--base-url", thief.origin]),
      await run(bench.devices, { env: { AGENTAUTH_BASE_URL: thief.origin } }),
      await run(bench.devices, {
        env: { AGENTAUTH_BASE_URL: bench.sandbox.baseUrl.replace("127.0.0.1", "localhost") },
      }),
    ]) {
      expect([drawn.code, drawn.stdout]).toEqual([2, ""]);
      expect(drawn.stderr).toMatch(
        /^error: the API token of profile default belongs to http:\/\/127\.0\.0\.1:\d+, not to /,
      );
    }
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
    expect([sandboxOutside.code, sandboxOutside.stdout]).toEqual([3, ""]);
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
      expect([inside.code, inside.stdout]).toEqual([3, ""]);
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

describe("a settings file that is wrong", () => {
  it.each<[string, string, string]>([
    ["an unknown key", '{\n  "schema": 1,\n  "profils": {}\n}', 'line 3 of <path>: unknown key "profils"'],
    [
      "an unknown setting",
      '{\n  "profiles": {\n    "default": {\n      "url": "x"\n    }\n  }\n}',
      'line 4 of <path>: unknown key "profiles.default.url"; known are',
    ],
    [
      "a value of the wrong kind, after the same word as a value",
      '{"profiles": {\n"default": {"account": "pool",\n"pool": 7}}}',
      'line 3 of <path>: profiles.default.pool is "7", not a string',
    ],
    [
      "a value that cannot be",
      '{\r\n\t"profiles": {\r\n\t\t"default": {\r\n\t\t\t"output": "xml"}}}',
      'profiles.default.output in line 4 of <path> "xml" must be one of',
    ],
    ["NaN", '{"schema": NaN}', "<path>: it is not valid JSON: a value was expected (line 1, column 12)"],
    ["an infinity", '{"schema": 1e999}', "<path>: it is not valid JSON: the number is too large (line 1, column 12)"],
    ["a comment", "{ // mine\n}", "(line 1, column 3)"],
    [
      "a name twice",
      '{"profile":"a",\n"profile":"b"}',
      'the name "profile" appears twice in one object (line 2, column 1)',
    ],
    ["a byte order mark", "\ufeff{}", "(line 1, column 1)"],
    ["a polluted prototype", '{"__proto__": {"profile": "x"}}', 'line 1 of <path>: unknown key "__proto__"'],
    [
      "a setting of a prototype",
      '{"profiles": {"default": {"constructor": "x"}}}',
      'unknown key "profiles.default.constructor"',
    ],
  ])("with %s is an error that names the line", async (_what, text, message) => {
    const home = temporaryFolder();
    const path = join(home, "config.json");
    writeFileSync(path, text);
    const { code, stdout, stderr } = await runCli(["config", "list"], { env: { AGENTAUTH_HOME: home } });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message.replace("<path>", path));
  });

  it("may have tabs and CRLF between its words", async () => {
    const home = temporaryFolder();
    writeFileSync(join(home, "config.json"), '{\r\n\t"profiles":\t{ "default": { "pool": "p" } }\r\n}\r\n');
    const { code, stdout } = await runCli(["config", "get", "pool"], { env: { AGENTAUTH_HOME: home } });
    expect([code, stdout]).toEqual([0, "p\n"]);
  });
});

describe("an identifier", () => {
  it.each(["../../x", "a/../b", "?a=b", "a&pool_id=other", "#frag", "%2e%2e%2f", "a b+c", "日本語", "..", "."])(
    "is sent as it is and changes nothing else: %s",
    async (id) => {
      const before = bench.sandbox.requests.length;
      const { code } = await bench.run(["devices", "list", "--pool", id]);
      expect(code).toBe(6);
      const asked = bench.sandbox.requests.slice(before);
      expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /api/v1/device"]);
    },
  );

  it("reaches the service in full", async () => {
    const seen: string[] = [];
    const { origin } = await startServer((response, { url }) => {
      seen.push(url);
      sendJson(response, { status: "error", code: "not_found", message: "no" }, 404);
    });
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "a-token-of-a-test" };
    await runCli(["devices", "list", "--pool", "../x?a=b&pool_id=y#z"], { env });
    const url = new URL(seen[0] ?? "", origin);
    expect([url.pathname, url.searchParams.getAll("pool_id"), url.hash]).toEqual([
      "/api/v1/device",
      ["../x?a=b&pool_id=y#z"],
      "",
    ]);
  });

  it.each([
    ["a line break", "a\\nb"],
    ["a control character", "a\\033[31m"],
    ["what is no UTF-8", "a\\377b"],
  ])("with %s in it is refused, and nothing is sent", async (_what, printf) => {
    const before = bench.sandbox.requests.length;
    for (const words of ['devices list --pool "$id"', `devices get "$id" --pool p`, 'tree --account "$id"']) {
      const script = `id="$(printf '${printf}x')"; exec "$0" "$1" ${words}`;
      const child = spawn("sh", ["-c", script, process.execPath, BIN], { env: cleanEnv(bench.env), stdio: "pipe" });
      const err = collect(child.stderr);
      const [code] = (await once(child, "close")) as [number | null];
      expect([code, err()]).toEqual([2, expect.stringContaining("has a control character or broken UTF-8 in it")]);
    }
    expect(bench.sandbox.requests.length).toBe(before);
  });
});
