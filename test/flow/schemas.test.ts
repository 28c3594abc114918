import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { linesOf, runCli } from "../helpers/cli.js";
import { discover, register, TOKEN_EXCHANGE } from "../sandbox/oauth/support.js";
import { type SchemaChecks, schemaChecks } from "./schema-checks.js";
import { type Desk, FETCH_BROWSER, type Newcomer, startDesk } from "./support.js";

let desk: Desk;
let me: Newcomer;
let url: string;
let problems: SchemaChecks;

beforeAll(async () => {
  desk = await startDesk({ devices: 5 });
  ({ url } = desk);
  me = desk.newcomer();
  await me.signIn();
  problems = await schemaChecks();
});
afterAll(() => desk.close());

const parsed = async (args: readonly string[], code = 0): Promise<unknown> => {
  const result = await me.run(args);
  expect(result.code, result.stderr).toBe(code);
  return JSON.parse(result.stdout);
};

describe("agentauth schema", () => {
  it("has a schema of draft 2020-12 with an id and a version for every type that it lists", async () => {
    const rows = linesOf((await runCli(["schema"])).stdout).map((line) => line.split("\t"));
    expect(rows.length).toBeGreaterThan(15);
    for (const [name = "", version, id, about] of rows) {
      const schema = JSON.parse((await runCli(["schema", name])).stdout);
      expect(schema).toMatchObject({ $schema: "https://json-schema.org/draft/2020-12/schema", $id: id, title: about });
      expect(id).toBe(`urn:agentauth:schema:${name}:${version}`);
    }
  });

  it("names the type that was meant", async () => {
    const { code, stdout, stderr } = await runCli(["schema", "devise"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe('error: there is no output type "devise"\nhint: did you mean device?\n');
  });

  it("sees a field that is wrong, that is missing and that nobody knows", async () => {
    const [login] = (await parsed(["status", "--json"])) as [Record<string, unknown>];
    expect(problems("status", { ...login, state: "fine" })).toBeDefined();
    expect(problems("status", { ...login, expires_at: "soon" })).toBeDefined();
    expect(problems("status", { ...login, surprise: 1 })).toBeDefined();
    const { server, ...rest } = login;
    expect([typeof server, problems("status", rest)]).toEqual(["string", expect.anything()]);
  });
});

describe("what is printed as JSON is what its schema says", () => {
  it.each([
    ["device", "devices"],
    ["pool", "pools"],
    ["domain", "domains"],
  ])("%s", async (type, noun) => {
    const { account, domain, pool } = desk.sandbox.ids;
    const scope = { devices: ["--pool", pool], pools: ["--domain", domain], domains: ["--account", account] }[noun];
    const items = (await parsed([noun, "list", ...(scope ?? []), "--json"])) as unknown[];
    expect(items.length).toBeGreaterThan(0);
    for (const item of items) expect(problems(type, item)).toBeUndefined();
  });

  it("tree, report and the events of a watched list", async () => {
    const { account, pool } = desk.sandbox.ids;
    expect(problems("tree", await parsed(["tree", "--account", account, "--json"]))).toBeUndefined();
    expect(problems("report", await parsed(["devices", "report", "--pool", pool, "--json"]))).toBeUndefined();
    const watched = ["devices", "list", "--pool", pool, "--watch", "--until", "length > 0", "-o", "ndjson"];
    const { stdout } = await me.run(watched);
    const events = linesOf(stdout).map((line) => JSON.parse(line));
    expect(events.length).toBe(desk.sandbox.data.deviceCount(pool));
    for (const event of events) expect(problems("watch-event", event)).toBeUndefined();
  });

  it.each<[string, (url: string) => string[]]>([
    ["token", (at) => ["token", at, "--format", "json"]],
    ["login", (at) => ["login", at, "--json", "--browser", FETCH_BROWSER]],
    ["login-begun", (at) => ["login", at, "--no-wait", "--json"]],
    ["discover", (at) => ["discover", at, "--json"]],
    ["introspection", (at) => ["introspect", at, "--json"]],
    ["doctor", () => ["doctor", "--json"]],
    ["commands", () => ["commands", "--json"]],
  ])("%s", async (type, args) => {
    expect(problems(type, await parsed(args(url)))).toBeUndefined();
  });

  it("discover that fails, and it fails as before", async () => {
    const { code, stdout, stderr } = await me.run(["discover", `${url}/nothing`, "--json"]);
    const report = JSON.parse(stdout) as { server: string; trace: unknown[]; error: Record<string, unknown> };
    expect(problems("discover", report)).toBeUndefined();
    expect(code).toBe(3);
    expect(report.server).toBe(`${url}/nothing`);
    expect(report.trace.length).toBeGreaterThan(1);
    expect(JSON.parse(stderr).error).toMatchObject(report.error);
    expect(report.error["hint"]).toContain("--legacy-discovery");
    expect(stdout + stderr).not.toContain("agentauth discover");
  });

  it.each<[string, (url: string) => string[]]>([
    ["status", () => ["status", "--json"]],
    ["tool", (at) => ["mcp", "tools", at, "--json"]],
    ["setting", () => ["config", "list", "--json"]],
    ["profile", () => ["profile", "list", "--json"]],
  ])("%s, each in a list", async (type, args) => {
    const items = (await parsed(args(url))) as unknown[];
    expect(items.length).toBeGreaterThan(0);
    for (const item of items) expect(problems(type, item)).toBeUndefined();
  });

  it("exchanged", async () => {
    const grants = ["authorization_code", "refresh_token", TOKEN_EXCHANGE];
    const client = await register(await discover(desk.sandbox), { grant_types: grants });
    const secret = String(client["client_secret"]);
    const { stdout: token } = await me.run(["token", url]);
    const exchange = ["exchange", url, "--client-id", client.client_id, "--resource", url, "--subject-token-file", "-"];
    exchange.push("--issuer", desk.sandbox.authUrl(desk.sandbox.ids.pool));
    const other = desk.newcomer();
    const { code, stdout, stderr } = await other.run([...exchange, "--format", "json"], {
      env: { AGENTAUTH_CLIENT_SECRET: secret },
      stdin: token,
    });
    expect(code, stderr).toBe(0);
    expect(problems("exchanged", JSON.parse(stdout))).toBeUndefined();
    const [bound] = JSON.parse((await other.run(["client", "list", "--json"])).stdout) as unknown[];
    expect(problems("client", bound)).toBeUndefined();
    const [forgotten] = JSON.parse((await other.run(["client", "forget", client.client_id, "--json"])).stdout);
    expect(problems("client-forgotten", forgotten)).toBeUndefined();
  });

  it("logout", async () => {
    const other = desk.newcomer();
    await other.signIn();
    const { stdout } = await other.run(["logout", url, "--json"]);
    expect(problems("logout", JSON.parse(stdout)[0])).toBeUndefined();
  });

  it.each<[string, string[]]>([
    ["of the parser", ["devices", "list", "--lmit", "3", "--json"]],
    ["of a command", ["devices", "list", "--json"]],
    ["of the service", ["devices", "list", "--pool", "nowhere", "--json"]],
    ["where nobody is signed in", ["introspect", "http://127.0.0.1:9/mcp", "--json"]],
  ])("an error %s", async (_whose, args) => {
    const { code, stdout, stderr } = await me.run(args);
    expect([stdout, problems("error", JSON.parse(stderr))]).toEqual(["", undefined]);
    expect(JSON.parse(stderr).error.exit_code).toBe(code);
  });
});
