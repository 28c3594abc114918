import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { runCli, temporaryFolder } from "../../helpers/cli.js";
import { sendJson, startServer } from "../../helpers/server.js";
import { testbedTest } from "../../helpers/testbed-test.js";

const it = testbedTest({ devices: 3 });

describe("a profile's token", () => {
  it("is not drawn out by an address from a flag or from the environment", async ({ testbed }) => {
    const thief = await startServer((response) => sendJson(response, {}));
    const home = temporaryFolder();
    const run = (args: string[], more: { stdin?: string; env?: Record<string, string> } = {}) =>
      runCli(args, { ...more, env: { AGENTAUTH_HOME: home, ...more.env } });
    await run(["config", "set", "base_url", testbed.sandbox.baseUrl]);
    await run(["config", "set", "api_token", "-"], { stdin: testbed.sandbox.apiToken });
    expect((await run([...testbed.devices, "-o", "id"])).code).toBe(0);
    for (const drawn of [
      await run([...testbed.devices, "--base-url", thief.origin]),
      await run(testbed.devices, { env: { AGENTAUTH_BASE_URL: thief.origin } }),
      await run(testbed.devices, {
        env: { AGENTAUTH_BASE_URL: testbed.sandbox.baseUrl.replace("127.0.0.1", "localhost") },
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
  it.for(["../../x", "a/../b", "?a=b", "a&pool_id=other", "#frag", "%2e%2e%2f", "a b+c", "日本語", "..", "."])(
    "is sent as it is and changes nothing else: %s",
    async (id, { testbed }) => {
      const before = testbed.sandbox.requests.length;
      const { code } = await testbed.run(["devices", "list", "--pool", id]);
      expect(code).toBe(6);
      const requested = testbed.sandbox.requests.slice(before);
      expect(requested.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /api/v1/device"]);
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
});
