import { describe, expect } from "vitest";
import { linesOf, runCli } from "../helpers/cli.js";
import { discover, register, TOKEN_EXCHANGE } from "../sandbox/oauth/support.js";
import { schemaChecks } from "./schema-checks.js";
import { FETCH_BROWSER, flowTest } from "./support.js";

const it = flowTest({ devices: 5 })
  .extend("problems", { scope: "file" }, schemaChecks)
  .extend("parsed", ({ user }) => async (args: readonly string[], code = 0): Promise<unknown> => {
    const result = await user.run(args);
    expect(result.code, result.stderr).toBe(code);
    return JSON.parse(result.stdout);
  });

describe("agentauth schema", () => {
  it("has a schema of draft 2020-12 with an id and a version for every type that it lists", async () => {
    const rows = linesOf((await runCli(["schema"])).stdout).map((line) => line.split("\t"));
    expect(rows.length).toBeGreaterThan(15);
    for (const [name = "", version, id, details] of rows) {
      const schema = JSON.parse((await runCli(["schema", name])).stdout);
      expect(schema).toMatchObject({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        $id: id,
        title: details,
      });
      expect(id).toBe(`urn:agentauth:schema:${name}:${version}`);
    }
  });

  it("suggests the nearest type", async () => {
    const { code, stdout, stderr } = await runCli(["schema", "devise"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe('error: there is no output type "devise"\nhint: did you mean device?\n');
  });

  it("rejects a field that is wrong, missing or unknown", async ({ parsed, problems }) => {
    const [login] = (await parsed(["status", "--json"])) as [Record<string, unknown>];
    expect(problems("status", { ...login, state: "fine" })).toBeDefined();
    expect(problems("status", { ...login, expires_at: "soon" })).toBeDefined();
    expect(problems("status", { ...login, surprise: 1 })).toBeDefined();
    const { server, ...rest } = login;
    expect([typeof server, problems("status", rest)]).toEqual(["string", expect.anything()]);
  });
});

describe("what is printed as JSON is what its schema says", () => {
  it.for([
    ["device", "devices"],
    ["pool", "pools"],
    ["domain", "domains"],
  ] as const)("%s", async ([type, noun], { harness, parsed, problems }) => {
    const { account, domain, pool } = harness.sandbox.ids;
    const scope = { devices: ["--pool", pool], pools: ["--domain", domain], domains: ["--account", account] }[noun];
    const items = (await parsed([noun, "list", ...(scope ?? []), "--json"])) as unknown[];
    expect(items.length).toBeGreaterThan(0);
    for (const item of items) expect(problems(type, item)).toBeUndefined();
  });

  it("report", async ({ harness, parsed, problems }) => {
    const { pool } = harness.sandbox.ids;
    expect(problems("report", await parsed(["devices", "report", "--pool", pool, "--json"]))).toBeUndefined();
  });

  it.for<[string, (url: string) => string[]]>([
    ["token", (at) => ["token", at, "--format", "json"]],
    ["login", (at) => ["login", at, "--json", "--browser", FETCH_BROWSER]],
    ["login-begun", (at) => ["login", at, "--no-wait", "--json"]],
    ["discover", (at) => ["discover", at, "--json"]],
    ["introspection", (at) => ["introspect", at, "--json"]],
    ["doctor", () => ["doctor", "--json"]],
    ["commands", () => ["commands", "--json"]],
    ["command", () => ["commands", "devices", "--json"]],
  ])("%s", async ([type, args], { parsed, problems, url }) => {
    expect(problems(type, await parsed(args(url)))).toBeUndefined();
  });

  it("the commands of an agent, and a pending login", async ({ me, problems, url }) => {
    const { stdout } = await me.run(["commands"], { env: { AGENTAUTH_AGENT: "1" } });
    for (const item of JSON.parse(stdout) as unknown[]) expect(problems("command-summary", item)).toBeUndefined();
    await me.run(["login", url, "--no-wait"]);
    const [pending] = JSON.parse((await me.run(["status", "--json"])).stdout) as unknown[];
    expect([problems("status", pending), pending]).toMatchObject([undefined, { state: "pending" }]);
  });

  it("discover that fails, with the same error as without --json", async ({ problems, url, user }) => {
    const { code, stdout, stderr } = await user.run(["discover", `${url}/nothing`, "--json"]);
    const report = JSON.parse(stdout) as { server: string; trace: unknown[]; error: Record<string, unknown> };
    expect(problems("discover", report)).toBeUndefined();
    expect(code).toBe(6);
    expect(report.server).toBe(`${url}/nothing`);
    expect(report.trace.length).toBeGreaterThan(1);
    expect(JSON.parse(stderr).error).toMatchObject(report.error);
    expect(report.error).toMatchObject({ code: "not_found", hint: "check the path of the address" });
    expect(stdout + stderr).not.toContain("agentauth discover");
  });

  it.for<[string, (url: string) => string[]]>([
    ["status", () => ["status", "--json"]],
    ["tool", (at) => ["mcp", "tools", at, "--json"]],
    ["setting", () => ["config", "list", "--json"]],
    ["profile", () => ["profile", "list", "--json"]],
  ])("%s, each in a list", async ([type, args], { parsed, problems, url }) => {
    const items = (await parsed(args(url))) as unknown[];
    expect(items.length).toBeGreaterThan(0);
    for (const item of items) expect(problems(type, item)).toBeUndefined();
  });

  it("exchanged", async ({ harness, me, problems, url, user }) => {
    const grants = ["authorization_code", "refresh_token", TOKEN_EXCHANGE];
    const client = await register(await discover(harness.sandbox), { grant_types: grants });
    const secret = String(client["client_secret"]);
    const { stdout: token } = await user.run(["token", url]);
    const exchange = ["exchange", url, "--client-id", client.client_id, "--resource", url, "--subject-token-file", "-"];
    exchange.push("--issuer", harness.sandbox.authUrl(harness.sandbox.ids.pool));
    const { code, stdout, stderr } = await me.run([...exchange, "--format", "json"], {
      env: { AGENTAUTH_CLIENT_SECRET: secret },
      stdin: token,
    });
    expect(code, stderr).toBe(0);
    expect(problems("exchanged", JSON.parse(stdout))).toBeUndefined();
  });

  it("logout", async ({ me, problems, url }) => {
    await me.logIn();
    const { stdout } = await me.run(["logout", url, "--json"]);
    expect(problems("logout", JSON.parse(stdout)[0])).toBeUndefined();
  });

  it.for<[string, string[]]>([
    ["of the parser", ["devices", "list", "--lmit", "3", "--json"]],
    ["of a command", ["devices", "list", "--json"]],
    ["of the service", ["devices", "list", "--pool", "nowhere", "--json"]],
    ["where no login is stored", ["introspect", "http://127.0.0.1:9/mcp", "--json"]],
  ])("an error %s", async ([, args], { problems, user }) => {
    const { code, stdout, stderr } = await user.run(args);
    expect([stdout, problems("error", JSON.parse(stderr))]).toEqual(["", undefined]);
    expect(JSON.parse(stderr).error.exit_code).toBe(code);
  });
});
