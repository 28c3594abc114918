import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, vi } from "vitest";
import { createAgentClient, createManagementClient, defaultStore } from "../../src/node.js";
import { memoryStore } from "../../src/store/memory.js";
import { flowTest, type User } from "../flow/support.js";
import { pendingError } from "../helpers/captured.js";
import { temporaryFolder } from "../helpers/folder.js";
import { startScene } from "../helpers/issuer.js";
import { ON_WINDOWS } from "../helpers/systems.js";

const it = flowTest({ machineGrants: true });

/** This process with the environment of a run, until the case ends. */
function stubEnvironment(env: Record<string, string | undefined>): void {
  for (const name of Object.keys(process.env)) if (name.startsWith("AGENTAUTH_")) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

let elsewhere: string;

beforeEach(() => {
  elsewhere = temporaryFolder();
});

const inHome = ({ home }: Pick<User, "home">) => stubEnvironment({ AGENTAUTH_HOME: home });

describe("createAgentClient", () => {
  it("returns the token of a login by the CLI, without a request", async ({ me, url }) => {
    const { stdout } = await me.logIn();
    const before = me.requests().length;
    inHome(me);
    const token = await createAgentClient().token(url);
    expect(`${token.value}\n`).toBe(stdout);
    expect(me.requests().length).toBe(before);
  });

  it("reads the environment when it is called, and never again", async ({ me, url }) => {
    const { stdout } = await me.logIn();
    inHome(me);
    const agent = createAgentClient();
    stubEnvironment({ AGENTAUTH_HOME: elsewhere });
    expect((await agent.token(url)).value).toBe(stdout.trim());
    expect(await pendingError(createAgentClient().token(url))).toMatchObject({ code: "login_required" });
  });

  it("uses the profile that is named by the option, else by AGENTAUTH_PROFILE", async ({ me, url }) => {
    await me.addProfile("work");
    await me.logIn("--profile", "work");
    inHome(me);
    expect(await pendingError(createAgentClient().token(url))).toMatchObject({ code: "login_required" });
    expect(await createAgentClient({ profile: "work" }).token(url)).toBeDefined();
    vi.stubEnv("AGENTAUTH_PROFILE", "work");
    expect(await createAgentClient().token(url)).toBeDefined();
    expect(await pendingError(createAgentClient({ profile: "default" }).token(url))).toMatchObject({
      code: "login_required",
      remedy: { action: "login", server: url },
    });
  });

  it("gives what the caller sets precedence, and an option that is undefined none", async ({ me, url }) => {
    await me.logIn();
    inHome(me);
    vi.stubEnv("AGENTAUTH_ISSUER", "https://other.example");
    expect(await pendingError(createAgentClient().token(url))).toMatchObject({ code: "login_required" });
    const { issuer } = await me.grant();
    expect(await createAgentClient({ issuer, store: undefined as never }).token(url)).toBeDefined();
    expect(await pendingError(createAgentClient({ issuer, store: memoryStore() }).token(url))).toMatchObject({
      code: "login_required",
    });
  });

  it("sends the secret of the environment for a client that has no other proof", async ({ harness }) => {
    const { machine } = harness.sandbox;
    if (machine === undefined) throw new Error("the sandbox has no machine clients");
    const { secretClient, issuer } = machine;
    stubEnvironment({ AGENTAUTH_HOME: elsewhere, AGENTAUTH_CLIENT_SECRET: secretClient.clientSecret });
    const client = { clientId: secretClient.clientId, issuer };
    const grant = { type: "client_credentials" } as const;
    expect(await createAgentClient({ client, grant }).token(harness.url)).toBeDefined();
    stubEnvironment({ AGENTAUTH_CLIENT_SECRET: "env:MY_SECRET", MY_SECRET: secretClient.clientSecret });
    expect(await createAgentClient({ client, grant, store: memoryStore() }).token(harness.url)).toBeDefined();
    const wrong = createAgentClient({ client: { ...client, clientSecret: "wrong" }, grant, store: memoryStore() });
    expect(await pendingError(wrong.token(harness.url))).toMatchObject({ code: "invalid_client" });
  });

  it("uses the parameters, the issuer and the audit file of the profile, and a receiver beside it", async () => {
    const scene = await startScene();
    stubEnvironment({ AGENTAUTH_HOME: elsewhere });
    const audit = join(elsewhere, "events", "audit.log");
    const entries = { authorize_params: "access_type=offline", issuer: scene.issuer.issuer, audit: `file:${audit}` };
    writeFileSync(join(elsewhere, "config.json"), JSON.stringify({ profiles: { default: entries } }), { mode: 0o600 });
    const types: string[] = [];
    const agent = createAgentClient({ login: scene.login, onEvent: ({ type }) => types.push(type) });
    await agent.login(scene.mcp.url);
    expect(scene.login.urls[0]?.searchParams.get("access_type")).toBe("offline");
    expect(types).toContain("login");
    expect(readFileSync(audit, "utf8")).toContain('"type":"login"');
    const parameters = { authorizationParams: { access_type: "online" }, login: scene.login, store: memoryStore() };
    await createAgentClient(parameters).login(scene.mcp.url);
    expect(scene.login.urls[1]?.searchParams.get("access_type")).toBe("online");
    if (ON_WINDOWS) return;
    chmodSync(audit, 0o644);
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => void warn.mockRestore());
    expect(() => createAgentClient()).toThrow("can be read by others");
    chmodSync(audit, 0o600);
    const warned = createAgentClient({ login: scene.login, store: memoryStore() });
    chmodSync(audit, 0o644);
    await warned.login(scene.mcp.url);
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining(`events cannot be written into ${audit}`), "AgentAuthWarning"],
    ]);
  });

  it.each([
    ["the option issuer", { issuer: "https://other.example" }],
    ["that of the client", { client: { clientId: "c", issuer: "https://other.example" } }],
    [
      "that of the grant",
      {
        client: { clientId: "c", clientSecret: "s", issuer: "https://other.example" },
        grant: { type: "client_credentials", issuer: "https://other.example" },
      },
    ],
  ] as const)("takes %s in place of that of the environment, which is not even checked", (_what, options) => {
    stubEnvironment({ AGENTAUTH_HOME: elsewhere, AGENTAUTH_ISSUER: "nothing of this kind" });
    expect(() => createAgentClient(options)).not.toThrow();
    expect(() => createAgentClient()).toThrow('AGENTAUTH_ISSUER "nothing of this kind" must be an https address');
  });

  it("makes a profile that does not exist, with the first login", async ({ me, url }) => {
    const scene = await startScene();
    inHome(me);
    const agent = createAgentClient({ profile: "new", login: scene.login });
    await expect(createAgentClient({ profile: "new" }).token(scene.mcp.url)).rejects.toMatchObject({
      code: "login_required",
    });
    expect((await me.run(["token", url, "--profile", "new"])).code).toBe(2);
    await agent.login(scene.mcp.url);
    const printed = await me.run(["token", scene.mcp.url, "--profile", "new"]);
    expect(printed.stdout.trim()).toBe((await agent.token(scene.mcp.url)).value);
    expect(() => createManagementClient({ profile: "newer" })).toThrow('there is no profile "newer"');
  });

  it("refuses an option that does not exist", () => {
    stubEnvironment({ AGENTAUTH_HOME: elsewhere });
    const wrong = { profil: "a" } as object;
    expect(() => createAgentClient(wrong)).toThrow(
      new TypeError('createAgentClient has no option "profil"; did you mean profile?'),
    );
    expect(() => createManagementClient(wrong)).toThrow(
      new TypeError('createManagementClient has no option "profil"; did you mean profile?'),
    );
  });

  it("takes an empty variable for one that is not set", () => {
    stubEnvironment({ AGENTAUTH_HOME: elsewhere, AGENTAUTH_STORE: "", AGENTAUTH_PROFILE: "", AGENTAUTH_ISSUER: "" });
    expect(() => createAgentClient()).not.toThrow();
  });

  it("uses the metadata document of the profile, another one, or none", async () => {
    const scene = await startScene();
    scene.issuer.metadata["client_id_metadata_document_supported"] = true;
    stubEnvironment({ AGENTAUTH_HOME: elsewhere });
    const document = "https://client.example/agent.json";
    const config = { profiles: { default: { client_metadata_url: document } } };
    writeFileSync(join(elsewhere, "config.json"), JSON.stringify(config), { mode: 0o600 });
    const other = "https://other.example/agent.json";
    for (const clientMetadataUrl of [undefined, other, "none"])
      await createAgentClient({ clientMetadataUrl, login: scene.login, store: memoryStore() }).login(scene.mcp.url);
    const clients = scene.login.urls.map((url) => url.searchParams.get("client_id"));
    expect(clients).toEqual([document, other, "client-as-1"]);
  });

  it.for([
    [{ AGENTAUTH_STORE: "cloud" }, 'AGENTAUTH_STORE "cloud" must be one of file, keyring, memory, redis, postgres'],
    [{ AGENTAUTH_STORE: "redis" }, "the store redis needs the address of the engine, and store_url is not set"],
    [{ AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_URL: "redis://127.0.0.1:1" }, "the store redis needs a key ring"],
    [{ AGENTAUTH_ISSUER: "http://issuer.example" }, 'AGENTAUTH_ISSUER "http://issuer.example" must be an https'],
    [{ HTTPS_PROXY: "socks5://127.0.0.1:1" }, 'HTTPS_PROXY "socks5://127.0.0.1:1" is a SOCKS proxy'],
  ] as const)("refuses %j at once", ([env, message]) => {
    stubEnvironment({ AGENTAUTH_HOME: elsewhere, ...env });
    expect(() => createAgentClient()).toThrow(message);
  });

  it("names the option, the file and the line of what is wrong", () => {
    stubEnvironment({ AGENTAUTH_HOME: elsewhere });
    expect(() => createAgentClient({ profile: "a b" })).toThrow('the option profile "a b" is not a valid profile name');
    const text = '{\n  "profiles": { "default": { "stoer": "file" } }\n}\n';
    writeFileSync(join(elsewhere, "config.json"), text, { mode: 0o600 });
    expect(() => defaultStore()).toThrow(`line 2 of ${join(elsewhere, "config.json")}: unknown key`);
  });
});

describe("createManagementClient", () => {
  it("lists with the service and the token of the environment", async ({ harness }) => {
    const { baseUrl, apiToken, ids } = harness.sandbox;
    stubEnvironment({ AGENTAUTH_HOME: elsewhere, AGENTAUTH_BASE_URL: baseUrl, AGENTAUTH_API_TOKEN: apiToken });
    const service = createManagementClient();
    stubEnvironment({});
    expect(await service.devices.list({ pool_id: ids.pool }).toArray()).toHaveLength(
      harness.sandbox.data.deviceCount(ids.pool),
    );
  });

  it("lists with those of a profile that the CLI wrote", async ({ me, harness }) => {
    const { baseUrl, apiToken, ids } = harness.sandbox;
    await me.addProfile("work");
    const stored = await me.run(["config", "set", "api_token", "-", "--profile", "work"], { stdin: apiToken });
    expect(stored.code).toBe(0);
    inHome(me);
    const service = createManagementClient({ profile: "work" });
    expect(await service.devices.list({ pool_id: ids.pool }).first()).toBeDefined();
    expect(() => createManagementClient()).toThrow("no service is configured");
    await me.run(["config", "set", "sorting", "field:direction", "--profile", "work"]);
    const sort = { field: "title", direction: "desc" } as const;
    for (const options of [{}, { sorting: "json" }] as const) {
      const list = createManagementClient({ profile: "work", ...options }).devices;
      await list.list({ pool_id: ids.pool }, { sort }).first();
    }
    const sent = harness.sandbox.requests.map(({ query }) => query["sorting"]).slice(-2);
    expect(sent).toEqual(["title:desc", '{"field":"title","direction":"desc"}']);
    // The token of a profile is sent to the service of the profile alone.
    const other = createManagementClient({ profile: "work", baseUrl: baseUrl.replace("127.0.0.1", "localhost") });
    await expect(other.devices.list({ pool_id: ids.pool }).first()).rejects.toThrow("(the option baseUrl)");
  });

  it("uses the token that the caller gives", async ({ harness }) => {
    const { baseUrl, apiToken, ids } = harness.sandbox;
    stubEnvironment({ AGENTAUTH_HOME: elsewhere, AGENTAUTH_BASE_URL: baseUrl, AGENTAUTH_API_TOKEN: "sandbox_wrong" });
    expect(await pendingError(createManagementClient().pools.list({ domain_id: ids.domain }).first())).toMatchObject({
      class: "auth",
    });
    const service = createManagementClient({ token: apiToken });
    expect(await service.pools.list({ domain_id: ids.domain }).first()).toBeDefined();
  });
});

it("defaultStore is the store of the CLI", async ({ me, url }) => {
  await me.logIn();
  inHome(me);
  expect((await defaultStore().read({ profile: "default", server: url }))?.server).toBe(url);
  vi.stubEnv("AGENTAUTH_STORE", "memory");
  expect(await defaultStore().read({ profile: "default", server: url })).toBeUndefined();
});
