import { describe, expect } from "vitest";
import { linesOf } from "../helpers/cli.js";
import { FETCH_BROWSER, flowTest } from "./support.js";

const it = flowTest({ autoApprove: "bob", scopesSupported: ["mcp", "reports:read"] });

describe("agentauth discover", () => {
  const steps = ["challenge", "resource metadata", "server metadata", "server metadata"];

  it("shows every step and what came of it; no user logs in, nothing is registered or stored", async ({
    harness,
    me,
    url,
  }) => {
    const { code, stdout } = await me.run(["discover", url]);
    const [trace = "", facts = "", ending] = stdout.split("\n\n");
    expect(code).toBe(0);
    expect(linesOf(trace).map((line) => /^[+-] ([a-z ]+): (?:GET|POST) http/.exec(line)?.[1])).toEqual(steps);
    expect(linesOf(trace).filter((line) => line.startsWith("-"))).toEqual([
      expect.stringMatching(
        /\/\.well-known\/oauth-authorization-server\/pool_\w+ 200: another document takes precedence$/,
      ),
    ]);
    const issuer = harness.sandbox.authUrl(harness.sandbox.ids.pool);
    expect(facts).toContain(`\nissuer         ${issuer}\n`);
    expect(facts).toContain(`\nregistration   ${issuer}/register\n`);
    expect(facts).toMatch(/\nscopes {9}mcp reports:read$/);
    expect(ending).toBe(`log in with: agentauth login ${url}\n`);
    expect(me.requests().every((request) => /well-known| \/mcp /.test(request))).toBe(true);
  });

  it("gives the same as JSON", async ({ harness, me, url }) => {
    const { code, stdout } = await me.run(["discover", url, "-o", "json"]);
    const report = JSON.parse(stdout) as { server: string; issuer: { issuer: string }; trace: { step: string }[] };
    expect([code, report.server, report.issuer.issuer]).toEqual([
      0,
      url,
      harness.sandbox.authUrl(harness.sandbox.ids.pool),
    ]);
    expect(report.trace.map(({ step }) => step)).toEqual(steps);
  });

  it("shows how far it came where it fails", async ({ faults, me, url }) => {
    faults.add({ kind: "status", status: 404, path: "metadata", times: 0 });
    const { code, stdout, stderr } = await me.run(["discover", url]);
    expect(code).toBe(3);
    expect(stdout).toContain("+ resource metadata: ");
    expect(stderr).toContain("publishes no metadata (RFC 8414)");
  });
});

describe("agentauth introspect", () => {
  it("asks the issuer about the token that is kept", async ({ url, user }) => {
    const before = user.requests().length;
    const { code, stdout } = await user.run(["introspect", url, "-o", "json"]);
    const { client } = await user.grant();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ active: true, sub: "bob", client_id: client.clientId, aud: url });
    expect(user.requests().slice(before)).toEqual(["POST /<pool>/introspect 200"]);
    expect((await user.run(["introspect", url, "--jq", ".active"])).stdout).toBe("true\n");
  });

  it("ends with 4 where no login is stored", async ({ me, url }) => {
    const { code, stdout, stderr } = await me.run(["introspect", url]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain(`hint: agentauth login ${url}\n`);
  });
});

describe("agentauth mcp", () => {
  it("lists the tools", async ({ url, user }) => {
    expect(linesOf((await user.run(["mcp", "tools", url, "-o", "id"])).stdout)).toEqual([
      "whoami",
      "echo",
      "admin_report",
    ]);
    const tools = JSON.parse((await user.run(["mcp", "tools", url, "--json"])).stdout) as { name: string }[];
    expect(tools[1]).toMatchObject({ name: "echo", inputSchema: { required: ["text"] } });
  });

  it("calls a tool as the user who logged in, by the client that registered", async ({ url, user }) => {
    const { stdout } = await user.run(["mcp", "call", url, "whoami"]);
    const { client } = await user.grant();
    expect(JSON.parse(stdout)).toMatchObject({ subject: "bob", client_id: client.clientId });
  });

  it("gives the arguments from --args or from standard input", async ({ url, user }) => {
    const given = await user.run(["mcp", "call", url, "echo", "--args", '{"text":"hello"}']);
    expect([given.code, given.stdout]).toEqual([0, "hello\n"]);
    const piped = await user.run(["mcp", "call", url, "echo", "--args", "-"], { stdin: '{"text":"from a pipe"}' });
    expect([piped.code, piped.stdout]).toEqual([0, "from a pipe\n"]);
  });

  it("ends with 6 where the tool fails, and with 2 for arguments that are no object", async ({ url, user }) => {
    const failed = await user.run(["mcp", "call", url, "echo"]);
    expect([failed.code, failed.stdout]).toEqual([6, 'echo needs the argument "text", a string\n']);
    expect(failed.stderr).toBe(
      `error: the tool "echo" failed; its output is on standard output\nhint: the arguments of each tool: agentauth mcp tools ${url} --json\n`,
    );
    const asJson = await user.run(["mcp", "call", url, "echo", "--json"]);
    expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([6, expect.objectContaining({ isError: true })]);
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: "mcp_failed", exit_code: 6 } });
    const before = user.requests().length;
    expect((await user.run(["mcp", "call", url, "echo", "--args", "[1]"])).code).toBe(2);
    expect(user.requests().length).toBe(before);
  });

  it("steps up where a browser is available: the scopes of the token and the missing one", async ({ me, url }) => {
    await me.logIn("--scope", "mcp");
    const alone = await me.run(["mcp", "call", url, "admin_report"]);
    expect([alone.code, alone.stdout]).toEqual([4, ""]);
    expect(alone.stderr).toContain(`\nhint: agentauth login ${url} --scope 'mcp reports:read'\n`);
    const before = me.requests().length;
    const { code, stdout } = await me.run(["mcp", "call", url, "admin_report", "--browser", FETCH_BROWSER]);
    expect([code, stdout]).toEqual([0, "12 pools, 340 devices, 3 of them revoked\n"]);
    expect((await me.grant()).tokens.scope).toBe("mcp reports:read");
    const calls = me
      .requests()
      .slice(before)
      .filter((request) => request.includes("/mcp tools/call"));
    expect(calls).toEqual(["POST /mcp tools/call 403", "POST /mcp tools/call 200"]);
    expect((await me.run(["mcp", "call", url, "admin_report"])).code).toBe(0);
  });

  it("does not log in without a flag", async ({ me, url }) => {
    const { code, stdout } = await me.run(["mcp", "tools", url]);
    expect([code, stdout, me.requests()]).toEqual([4, "", ["POST /mcp tools/list 401"]]);
  });
});
