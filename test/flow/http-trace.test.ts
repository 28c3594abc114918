import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { linesOf } from "../helpers/cli.js";
import { type Desk, type Newcomer, startDesk } from "./support.js";

let desk: Desk;
let me: Newcomer;

beforeAll(async () => {
  desk = await startDesk();
  me = desk.newcomer();
  await me.signIn();
});
afterAll(() => desk.close());

/** The requests and answers that were told, with the pool's path and the server left out. */
function told(stderr: string): string[] {
  const { baseUrl, ids } = desk.sandbox;
  return linesOf(stderr).flatMap((line) => {
    const [, mark, what = "", url = ""] = /^([<>]) (\S+) (\S+)/.exec(line) ?? [];
    return mark === undefined || what === ""
      ? []
      : `${mark} ${what} ${url.replace(baseUrl, "").replace(ids.pool, "<pool>")}`;
  });
}

async function shownNowhere(text: string): Promise<void> {
  const { tokens, client } = await me.grant();
  const secrets = [tokens.accessToken, tokens.refreshToken, tokens.idToken, client.clientSecret];
  for (const secret of secrets) if (secret) expect(text).not.toContain(secret.reveal());
}

const MCP = ["> POST /mcp", "< 200 /mcp"];
const TOKEN = ["> POST /<pool>/token", "< 200 /<pool>/token"];

const HEADER = /^> {3}authorization: \w+ \*{8}$/m;

describe("--debug", () => {
  it.each<[string, string[], string[]]>([
    ["mcp tools", ["mcp", "tools", "URL"], [...MCP, ...MCP]],
    ["mcp call", ["mcp", "call", "URL", "whoami"], [...MCP, ...MCP]],
    ["introspect", ["introspect", "URL"], ["> POST /<pool>/introspect", "< 200 /<pool>/introspect"]],
    ["token", ["token", "URL", "--force-refresh"], TOKEN],
    ["exec", ["exec", "URL", "--", "true"], TOKEN],
    ["request", ["request", "URL", "--data", "{}"], ["> POST /mcp", "< 400 /mcp"]],
  ])("logs every request of %s with its headers, and no secret", async (name, words, expected) => {
    if (name === "exec") await me.age(-10);
    const args = words.map((word) => (word === "URL" ? desk.url : word));
    const { stdout, stderr } = await me.run(["--debug", ...args]);
    expect(told(stderr)).toEqual(expected);
    expect(stderr).toMatch(HEADER);
    expect(told(stdout)).toEqual([]);
    await shownNowhere(stderr);
  });

  it("logs every request of a login, without the queries", async () => {
    const { stderr } = await me.signIn("--force-refresh", "--scope", "mcp reports:read", "--debug");
    expect(told(stderr)).toEqual(expect.arrayContaining(["> POST /mcp", "< 401 /mcp", ...TOKEN]));
    for (const line of linesOf(stderr)) if (/^[<>+-] /.test(line)) expect(line).not.toContain("?");
    await shownNowhere(stderr);
  });

  it("logs the request of an exchange", async () => {
    const { stderr } = await me.run(["exchange", desk.url, "--audience", "https://api.example", "--debug"]);
    expect(told(stderr)[0]).toBe("> POST /<pool>/token");
    await shownNowhere(stderr);
  });

  it("logs a failed response, and that the request is repeated", async () => {
    desk.sandbox.faults.add({ kind: "status", status: 503, path: "prm", times: 1 });
    const { stderr } = await me.run(["discover", desk.url, "--debug"]);
    desk.sandbox.faults.clear();
    expect(stderr).toMatch(/^ {2}HTTP 503: attempt 2 in \d+ ms$/m);
    expect(told(stderr)).toContain("< 503 /.well-known/oauth-protected-resource/mcp");
  });
});

describe("a list and a call of a tool", () => {
  it.each<[string, string[]]>([
    ["requests with -v", ["-v"]],
    ["requests and headers with --debug", ["--debug"]],
    ["nothing without a flag", []],
  ])("tell %s", async (_what, flags) => {
    const list = await me.run([...desk.devices, "-o", "id", ...flags]);
    const call = await me.run(["mcp", "call", desk.url, "whoami", ...flags]);
    const [first = ""] = told(list.stderr);
    expect(first.startsWith("> GET /api/v1/device?pool_id=")).toBe(flags.length > 0);
    expect(told(call.stderr)).toEqual(flags.length > 0 ? [...MCP, ...MCP] : []);
    for (const { stderr } of [list, call]) expect(HEADER.test(stderr)).toBe(flags.includes("--debug"));
    expect(list.stdout + list.stderr).not.toContain(desk.sandbox.apiToken);
    await shownNowhere(call.stderr);
  });
});
