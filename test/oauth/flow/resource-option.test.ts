import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { decodeLogin, encodeLogin } from "../../../src/oauth/login/login-codec.js";
import { pendingError } from "../../helpers/captured.js";
import { type Scene, startScene } from "../../helpers/issuer.js";

const SIGNAL = new AbortController().signal;
const HOUR_MS = 3_600_000;
const TOKEN = "/pool/token";
const MACHINE = {
  grant: { type: "client_credentials" },
  client: { clientId: "machine", clientSecret: "secret" },
  login: undefined,
} as const;
const KINDS: readonly [string, Partial<AgentClientOptions>][] = [
  ["a login", {}],
  ["a device login", { flow: "device" }],
  ["a machine grant", MACHINE],
];

/** The first token of a client, however it gets one. */
const begin = ({ agent, mcp }: Scene, options: Partial<AgentClientOptions>) =>
  "grant" in options ? agent(options).token(mcp.url) : agent(options).login(mcp.url);

/** The resources of all requests to the issuer that could have one. */
function resourcesOf({ issuer, login }: Scene): string[] {
  const forms = ["/pool/device", TOKEN].flatMap((path) => issuer.to(path).map((_, nth) => issuer.form(path, nth)));
  const requested = login.opened.length === 0 ? [] : login.requested().getAll("resource");
  return [...requested, ...forms.flatMap((form) => form.getAll("resource"))];
}

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('the resource "none"', () => {
  it.each(KINDS)("is sent in no request of %s and its refreshes, also without the option later", async (_, options) => {
    const scene = await startScene();
    const { agent, mcp, clock, store } = scene;
    expect((await begin(scene, { ...options, resource: "none" })).resource).toBe("none");
    await clock.sleep(HOUR_MS, SIGNAL);
    expect((await agent({ ...options, login: undefined }).token(mcp.url)).value).toBe("access-as-2");
    expect(resourcesOf(scene)).toEqual([]);
    expect(await store.list()).toMatchObject([{ resource: "none", overrides: ["resource"] }]);
  });

  it("is sent in no request of a login that another process finishes, and of the next login", async () => {
    const scene = await startScene();
    const { agent, mcp, login } = scene;
    const begun = await agent({ resource: "none" }).beginLogin(mcp.url, login.redirectUri);
    const prepared = decodeLogin(encodeLogin({ ...begun, profile: "default" }));
    const session = await login.open({ resource: mcp.url, issuer: prepared.issuer.issuer, signal: SIGNAL });
    await agent().finishLogin(prepared, session);
    await agent().login(mcp.url);
    expect(resourcesOf(scene)).toEqual([]);
  });

  it("does not follow to another issuer", async () => {
    const scene = await startScene();
    const { agent, mcp, another } = scene;
    await agent({ resource: "none" }).login(mcp.url);
    const other = await another("other");
    mcp.serveFor(other);
    await agent().login(mcp.url);
    expect(other.form(TOKEN).get("resource")).toBe(mcp.url);
  });

  it("replaces a login with a resource, and is replaced by one", async () => {
    const { agent, mcp, issuer } = await startScene();
    await agent().login(mcp.url);
    await agent({ resource: "none" }).token(mcp.url);
    expect(issuer.form(TOKEN, 1).has("resource")).toBe(false);
    const named = agent({ resource: mcp.url, login: undefined });
    await expect(named.token(mcp.url)).rejects.toThrow("the token was requested without a resource");
    await agent({ resource: mcp.url }).token(mcp.url);
    expect(issuer.form(TOKEN, 2).get("resource")).toBe(mcp.url);
  });

  it("gives a token that is sent to its own server only", async () => {
    const { agent, mcp, issuer } = await startScene();
    await agent({ resource: "none" }).login(mcp.url);
    const client = agent({ login: undefined });
    for (const address of [mcp.origin, `${mcp.url}/deeper`, `${mcp.url}?tenant=2`, `${issuer.origin}/mcp`]) {
      const code = address.includes("?") ? "login_required" : "not_found";
      expect(await pendingError(client.fetch(address))).toMatchObject({ code });
    }
    expect(mcp.tokens()).toEqual([]);
  });
});

describe("an issuer that rejects the resource", () => {
  const ENTRA = "AADSTS9010010: The resource parameter doesn't match with the requested scopes.";
  const refusals: readonly [string, Record<string, string>][] = [
    ["invalid_target", { error: "invalid_target" }],
    ["invalid_request with the code of Entra", { error: "invalid_request", error_description: ENTRA }],
    ["invalid_resource with the code of Entra", { error: "invalid_resource", error_description: ENTRA }],
    ["invalid_scope with the code of Entra", { error: "invalid_scope", error_description: ENTRA }],
  ];
  const remedyFor = (value: string) => ({ action: "configure", option: "resource", value });

  for (const [what, json] of refusals) {
    it.each(KINDS)(
      `is met with ${what} in the token response of %s, whose remedy is the option`,
      async (_, options) => {
        const scene = await startScene();
        scene.issuer.routes[TOKEN] = { status: 400, json };
        expect(await failureOf(begin(scene, options))).toMatchObject({ remedy: remedyFor(scene.mcp.url) });
        const without = await failureOf(begin(scene, { ...options, resource: "none" }));
        expect(without).toMatchObject({ hint: "the issuer needs a resource: set the option resource" });
      },
    );

    it(`is met with ${what} in the callback, in the response to a device and in a refresh`, async () => {
      const scene = await startScene();
      const { agent, issuer, mcp, clock } = scene;
      await agent().login(mcp.url);
      await clock.sleep(HOUR_MS, SIGNAL);
      issuer.routes[TOKEN] = { status: 400, json };
      expect(await failureOf(agent().token(mcp.url))).toMatchObject({ remedy: remedyFor(mcp.url) });
      issuer.callback = { code: null, ...json };
      expect(await failureOf(agent().login(mcp.url))).toMatchObject({ remedy: remedyFor(mcp.url) });
      issuer.routes["/pool/device"] = { status: 400, json };
      const device = agent({ flow: "device", resource: "api://other" });
      expect(await failureOf(device.login(mcp.url))).toMatchObject({ remedy: remedyFor("api://other") });
    });
  }
});

describe("metadata that a challenge names and that describe the origin", () => {
  /** An MCP server on a shared host, with its document below its path. */
  async function sharedHost(parent = ""): Promise<Scene> {
    const scene = await startScene({ mcpPath: "/api/mcp" });
    const { mcp } = scene;
    mcp.challenge = `Bearer resource_metadata="${mcp.origin}/api/prm"`;
    mcp.routes["/api/prm"] = () => ({ json: { ...mcp.metadata, resource: `${mcp.origin}${parent}` } });
    delete mcp.routes[mcp.wellKnown];
    return scene;
  }

  it.each(["", "/", "/api", "/api/"])(
    "are refused with the flag that accepts exactly their resource: %j",
    async (parent) => {
      const { agent, issuer, mcp } = await sharedHost(parent);
      const value = `${mcp.origin}${parent}`;
      expect(await failureOf(agent().login(mcp.url))).toMatchObject({
        code: "resource_mismatch",
        remedy: { action: "allow", option: "resource", value },
      });
      expect((await agent({ resource: value }).login(mcp.url)).resource).toBe(value);
      expect(issuer.form(TOKEN).get("resource")).toBe(value);
    },
  );

  it.each<[string, string, Partial<AgentClientOptions> | ((origin: string) => Partial<AgentClientOptions>)]>([
    ["without the option", "", {}],
    ["with another resource", "", (origin) => ({ resource: `${origin}/api` })],
    ["with a slash more", "", (origin) => ({ resource: `${origin}/` })],
    ["with none", "", { resource: "none" }],
    ["with strictResource", "", (origin) => ({ resource: origin, policy: { strictResource: true } })],
    ["for a sibling", "/other", (origin) => ({ resource: `${origin}/other` })],
    ["for no segment boundary", "/ap", (origin) => ({ resource: `${origin}/ap` })],
    ["for a deeper path", "/api/mcp/deeper", (origin) => ({ resource: `${origin}/api/mcp/deeper` })],
  ])("stay refused %s", async (_, parent, options) => {
    const { agent, issuer, mcp } = await sharedHost(parent);
    const given = typeof options === "function" ? options(mcp.origin) : options;
    const error = await failureOf(agent(given).login(mcp.url));
    expect(error).toMatchObject({ code: "resource_mismatch" });
    expect(issuer.to("/pool/register")).toEqual([]);
    const isParent = parent === "" && given.policy?.strictResource !== true;
    const remedy = (error as { remedy?: unknown }).remedy;
    expect(remedy).toEqual(isParent ? { action: "allow", option: "resource", value: mcp.origin } : undefined);
  });

  it("stay refused on another origin", async () => {
    const { agent, mcp } = await sharedHost();
    mcp.metadata["resource"] = "https://other.example";
    mcp.routes["/api/prm"] = () => ({ json: mcp.metadata });
    const error = await failureOf(agent({ resource: "https://other.example" }).login(mcp.url));
    expect(error).toMatchObject({ class: "refused" });
  });

  it("are accepted in the next login for the same issuer, and refused for another one", async () => {
    const { agent, mcp, another, issuer } = await sharedHost();
    await agent({ resource: mcp.origin }).login(mcp.url);
    await agent().login(mcp.url);
    expect(issuer.form(TOKEN, 1).get("resource")).toBe(mcp.origin);
    const other = await another("other");
    mcp.metadata = { ...mcp.metadata, authorization_servers: [other.issuer] };
    expect(await failureOf(agent().login(mcp.url))).toMatchObject({
      code: "bad_address",
      message: expect.stringContaining("the issuer for which an earlier login accepted the resource"),
      remedy: { action: "allow", option: "resource", value: mcp.origin },
    });
    expect(other.to("/pool/register")).toEqual([]);
  });

  it("do not name a flag for a resource that is no normal address", async () => {
    const { agent, mcp } = await sharedHost("/./api/./.");
    const error = await failureOf(agent().login(mcp.url));
    expect(error).toMatchObject({ code: "resource_mismatch" });
    expect(error).not.toHaveProperty("remedy");
  });
});
