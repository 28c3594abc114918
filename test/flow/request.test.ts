import { describe, expect } from "vitest";
import { startServer } from "../helpers/server.js";
import { flowTest, LOGIN_FLAGS } from "./support.js";

const it = flowTest();

const call = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
const LIST = call("tools/list");
const REPORT = call("tools/call", { name: "admin_report", arguments: {} });

describe("agentauth request", () => {
  it("sends a request with the token, and prints the answer and nothing else", async ({ me, url }) => {
    await me.logIn();
    const { code, stdout, stderr } = await me.run(["request", url, "--data", LIST]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain('"admin_report"');
    expect(me.requests().at(-1)).toBe("POST /mcp tools/list 200");
  });

  it("takes its body from standard input", async ({ me, url }) => {
    await me.logIn();
    const { code, stdout } = await me.run(["request", url, "-d", "-"], { stdin: LIST });
    expect(code).toBe(0);
    expect(stdout).toContain('"admin_report"');
  });

  it("logs in where that is needed and allowed, and ends with 4 where it is not", async ({ me, url }) => {
    const refused = await me.run(["request", url, "-d", LIST]);
    expect([refused.code, refused.stdout]).toEqual([4, ""]);
    expect(refused.stderr).toContain(`\nhint: agentauth login ${url}\n`);
    expect(me.requests()).toEqual(["POST /mcp tools/list 401"]);
    const { code, stdout } = await me.run(["request", url, "-d", LIST, ...LOGIN_FLAGS]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('"admin_report"')]);
  });

  it("refreshes a token that its server no longer accepts", async ({ faults, me, url }) => {
    const first = await me.logIn();
    faults.add({ kind: "status", status: 401, path: "mcp" });
    expect((await me.run(["request", url, "-d", LIST])).code).toBe(0);
    expect((await me.run(["token", url])).stdout).not.toBe(first.stdout);
  });

  it("ends with 4 where the token is refused after that, with the body on standard output", async ({
    faults,
    me,
    url,
  }) => {
    await me.logIn();
    faults.add({ kind: "status", status: 401, path: "mcp", times: 0, body: "html" });
    const { code, stdout, stderr } = await me.run(["request", url, "-d", LIST]);
    expect([code, stdout]).toEqual([4, expect.stringContaining("<")]);
    expect(stderr).toContain(`hint: agentauth login ${url}`);
  });

  it("requests the scopes that are missing, or names them", async ({ me, url }) => {
    await me.logIn();
    const refused = await me.run(["request", url, "-d", REPORT]);
    expect([refused.code, refused.stdout]).toEqual([4, ""]);
    expect(refused.stderr).toContain("reports:read");
    const { code, stdout } = await me.run(["request", url, "-d", REPORT, ...LOGIN_FLAGS]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("12 pools")]);
    expect((await me.grant()).tokens.scope?.split(" ").sort()).toEqual(["mcp", "reports:read"]);
  });

  it.for([
    [404, 6],
    [429, 5],
    [503, 5],
  ] as const)(
    "ends with %i's exit code %i, the body on standard output and one error on standard error",
    async ([status, exit], { faults, me, url }) => {
      await me.logIn();
      faults.add({ kind: "status", status, path: "mcp", times: 0, body: "html" });
      const { code, stdout, stderr } = await me.run(["request", url, "-d", LIST]);
      expect([code, stdout]).toEqual([exit, expect.stringContaining("<")]);
      expect(stderr.match(/^error: .*$/gm)).toEqual([expect.stringContaining(`(HTTP ${status})`)]);
    },
  );

  it("sends its body to no other server", async ({ faults, me, url }) => {
    const other = await startServer((response) => response.end("elsewhere"));
    await me.logIn();
    faults.add({ kind: "redirect", location: `${other.origin}/x`, status: 307, path: "mcp", times: 0 });
    const { code, stdout, stderr } = await me.run(["request", url, "-d", LIST]);
    expect([code, stdout, stderr]).toEqual([
      4,
      "",
      expect.stringContaining(`from ${new URL(url).origin} to "${other.origin}"`),
    ]);
    expect(other.requests).toEqual([]);
  });

  it("ends with 5 where a server does not respond within --timeout", async ({ faults, me, url }) => {
    await me.logIn();
    faults.add({ kind: "slow-headers", ms: 60_000, path: "mcp", times: 0 });
    const { code, stdout, stderr } = await me.run(["request", url, "-d", LIST, "--timeout", "1"]);
    expect([code, stdout]).toEqual([5, ""]);
    expect(stderr).toMatch(/^error: .*no response started in 1 s\nhint: --timeout/);
  });

  it("ends with 130 at SIGINT in the middle of a body", async ({ faults, me, url }) => {
    await me.logIn();
    faults.add({ kind: "slow-body", bytes: 8, ms: 200, path: "mcp", times: 0 });
    const signalAfter = { characters: 8, signal: "SIGINT" } as const;
    const { code, stdout, stderr } = await me.run(["request", url, "-d", LIST], { signalAfter });
    expect([code, stderr]).toEqual([130, "error: ended by SIGINT\n"]);
    expect(stdout).not.toContain("admin_report");
  });

  it("sends nothing where the command line is wrong", async ({ me, url }) => {
    await me.logIn();
    const before = me.requests().length;
    for (const flags of [
      ["-H", "Authorization: x"],
      ["-H", "x"],
      ["-X", "GET", "-d", "x"],
      ["-d", "@/nowhere"],
    ]) {
      const { code, stdout } = await me.run(["request", url, ...flags]);
      expect([flags, code, stdout]).toEqual([flags, 2, ""]);
    }
    expect((await me.run(["request", `${url}#x`])).code).toBe(2);
    expect(me.requests().length).toBe(before);
  });
});
