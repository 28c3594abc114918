import { describe, expect } from "vitest";
import { linesOf } from "../helpers/cli.js";
import { flowTest, type Harness, type User } from "./support.js";

const it = flowTest();

/** The logged requests and responses, with the pool's path and the server left out. */
function logged(harness: Harness, stderr: string): string[] {
  const { baseUrl, ids } = harness.sandbox;
  return linesOf(stderr).flatMap((line) => {
    const [, mark, what = "", url = ""] = /^([<>]) (\S+) (\S+)/.exec(line) ?? [];
    return mark === undefined || what === ""
      ? []
      : `${mark} ${what} ${url.replace(baseUrl, "").replace(ids.pool, "<pool>")}`;
  });
}

async function expectNoSecret(user: User, text: string): Promise<void> {
  const { tokens, client } = await user.grant();
  const secrets = [tokens.accessToken, tokens.refreshToken, tokens.idToken, client.clientSecret];
  for (const secret of secrets) if (secret) expect(text).not.toContain(secret.reveal());
}

const MCP = ["> POST /mcp", "< 200 /mcp"];
const TOKEN = ["> POST /<pool>/token", "< 200 /<pool>/token"];

const HEADER = /^> {3}authorization: \w+ \*{8}$/m;

describe("--debug", () => {
  it.for<[string, string[], string[]]>([
    ["mcp tools", ["mcp", "tools", "URL"], [...MCP, ...MCP]],
    ["mcp call", ["mcp", "call", "URL", "whoami"], [...MCP, ...MCP]],
    ["introspect", ["introspect", "URL"], ["> POST /<pool>/introspect", "< 200 /<pool>/introspect"]],
    ["token", ["token", "URL", "--force-refresh"], TOKEN],
    ["exec", ["exec", "URL", "--", "true"], TOKEN],
    ["request", ["request", "URL", "--data", "{}"], ["> POST /mcp", "< 400 /mcp"]],
  ])(
    "logs every request of %s with its headers, and no secret",
    async ([name, words, expected], { harness, url, user }) => {
      if (name === "exec") await user.age(-10);
      const args = words.map((word) => (word === "URL" ? url : word));
      const { stdout, stderr } = await user.run(["--debug", ...args]);
      expect(logged(harness, stderr)).toEqual(expected);
      expect(stderr).toMatch(HEADER);
      expect(logged(harness, stdout)).toEqual([]);
      await expectNoSecret(user, stderr);
    },
  );

  it("logs every request of a login, without the queries", async ({ harness, user }) => {
    const { stderr } = await user.logIn("--force-refresh", "--scope", "mcp reports:read", "--debug");
    expect(logged(harness, stderr)).toEqual(expect.arrayContaining(["> POST /mcp", "< 401 /mcp", ...TOKEN]));
    for (const line of linesOf(stderr)) if (/^[<>+-] /.test(line)) expect(line).not.toContain("?");
    await expectNoSecret(user, stderr);
  });

  it("logs the request of an exchange", async ({ harness, url, user }) => {
    const { stderr } = await user.run(["exchange", url, "--audience", "https://api.example", "--debug"]);
    expect(logged(harness, stderr)[0]).toBe("> POST /<pool>/token");
    await expectNoSecret(user, stderr);
  });

  it("logs a failed response, and that the request is repeated", async ({ harness, faults, url, user }) => {
    faults.add({ kind: "status", status: 503, path: "prm", times: 1 });
    const { stderr } = await user.run(["discover", url, "--debug"]);
    expect(stderr).toMatch(/^ {2}HTTP 503: attempt 2 in \d+ ms$/m);
    expect(logged(harness, stderr)).toContain("< 503 /.well-known/oauth-protected-resource/mcp");
  });
});

describe("a list and a call of a tool", () => {
  it.for<[string, string[]]>([
    ["requests with -v", ["-v"]],
    ["requests and headers with --debug", ["--debug"]],
    ["nothing without a flag", []],
  ])("log %s", async ([, flags], { harness, url, user }) => {
    const list = await user.run([...harness.devices, "-o", "id", ...flags]);
    const call = await user.run(["mcp", "call", url, "whoami", ...flags]);
    const [first = ""] = logged(harness, list.stderr);
    expect(first.startsWith("> GET /api/v1/device?pool_id=")).toBe(flags.length > 0);
    expect(logged(harness, call.stderr)).toEqual(flags.length > 0 ? [...MCP, ...MCP] : []);
    for (const { stderr } of [list, call]) expect(HEADER.test(stderr)).toBe(flags.includes("--debug"));
    expect(list.stdout + list.stderr).not.toContain(harness.sandbox.apiToken);
    await expectNoSecret(user, call.stderr);
  });
});
