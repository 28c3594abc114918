import { beforeEach, describe, expect, it } from "vitest";
import { cliHint } from "../../../src/cli/runtime/hints.js";
import type { AgentAuthError } from "../../../src/errors.js";
import { AgentClient, type AgentClientOptions } from "../../../src/oauth/agent.js";
import { decodeLogin, encodeLogin } from "../../../src/oauth/login/login-codec.js";
import { memoryStore } from "../../../src/store/memory.js";
import { captureTrace, pendingError } from "../../helpers/captured.js";
import { type Scene, startScene, type TestIssuer } from "../../helpers/issuer.js";

type Documents = Record<string, Record<string, unknown>>;

const OAUTH = ".well-known/oauth-authorization-server";
const OPENID = ".well-known/openid-configuration";

/** Server metadata whose endpoints are below an address. */
function metadataOf(issuer: string, at: string, over: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    issuer,
    authorization_endpoint: `${at}/authorize`,
    token_endpoint: `${at}/token`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
    ...over,
  };
}

interface Vendor {
  mcp: string;
  named: string;
  /** The metadata documents by address, beside that of the resource. */
  documents: Documents;
}

/** Discovery at a vendor's MCP server, over an injected fetch. */
async function discoverAt({ mcp, named, documents }: Vendor, options: Partial<AgentClientOptions> = {}) {
  const { origin, pathname } = new URL(mcp);
  const all: Documents = {
    ...documents,
    [`${origin}/.well-known/oauth-protected-resource${pathname}`]: { resource: mcp, authorization_servers: [named] },
  };
  const requested: string[] = [];
  const fetch = async (input: string | URL | Request) => {
    const { url, method } = new Request(input);
    requested.push(`${method} ${url}`);
    const json = all[url];
    return json ? Response.json(json) : new Response("", { status: method === "POST" ? 401 : 404 });
  };
  const report = await new AgentClient({ store: memoryStore(), fetch, ...options }).discover(mcp);
  captureTrace(report.trace, report.error);
  return { ...report, requested };
}

const GOOGLE = metadataOf("https://accounts.google.com", "https://accounts.google.com/o/oauth2/v2");
const TENANT = "https://login.microsoftonline.com/1f2e/v2.0";
const COMMON = "https://login.microsoftonline.com/common/v2.0";
const TEMPLATE = "https://login.microsoftonline.com/{tenantid}/v2.0";

const VENDORS = {
  google: {
    mcp: "https://drivemcp.googleapis.com/mcp/v1",
    named: "https://accounts.google.com/",
    documents: { [`https://accounts.google.com/${OPENID}`]: GOOGLE },
  },
  auth0: {
    mcp: "https://mcp.jumpcloud.com/v1",
    named: "https://auth.jumpcloud.com",
    documents: {
      [`https://auth.jumpcloud.com/${OPENID}`]: metadataOf("https://auth.jumpcloud.com/", "https://auth.jumpcloud.com"),
    },
  },
  slack: {
    mcp: "https://mcp.slack.com/mcp",
    named: "https://mcp.slack.com",
    documents: {
      [`https://mcp.slack.com/${OAUTH}`]: metadataOf("https://slack.com", "https://slack.com/oauth/v2_user"),
      [`https://slack.com/${OPENID}`]: metadataOf("https://slack.com", "https://slack.com/openid/connect", {
        code_challenge_methods_supported: undefined,
      }),
    },
  },
  atlassian: {
    mcp: "https://mcp.atlassian.com/v1/mcp/authv2",
    named: "https://auth.atlassian.com/tenant-7",
    documents: {
      [`https://auth.atlassian.com/tenant-7/${OAUTH}`]: metadataOf(
        "https://auth.atlassian.com",
        "https://auth.atlassian.com/tenant-7",
      ),
    },
  },
  salesforce: {
    mcp: "https://api.salesforce.com/platform/mcp/v1",
    named: "https://acme.my.salesforce.com",
    documents: {
      [`https://acme.my.salesforce.com/${OAUTH}`]: metadataOf(
        "https://login.salesforce.com",
        "https://acme.my.salesforce.com/services/oauth2",
      ),
      [`https://login.salesforce.com/${OAUTH}`]: metadataOf(
        "https://login.salesforce.com",
        "https://login.salesforce.com/services/oauth2",
      ),
    },
  },
  entra: {
    mcp: "https://mcp.contoso.example/mcp",
    named: COMMON,
    documents: {
      [`${COMMON}/${OPENID}`]: metadataOf(TEMPLATE, "https://login.microsoftonline.com/common/oauth2/v2.0"),
      [`${TENANT}/${OPENID}`]: metadataOf(TENANT, "https://login.microsoftonline.com/1f2e/oauth2/v2.0"),
    },
  },
} satisfies Record<string, Vendor>;

describe("an issuer that differs from its metadata by a slash after the host", () => {
  it.each([
    ["google", "https://accounts.google.com"],
    ["auth0", "https://auth.jumpcloud.com/"],
  ] as const)("is accepted at %s, as the metadata have it", async (vendor, issuer) => {
    const { found } = await discoverAt(VENDORS[vendor]);
    expect(found?.issuer).toMatchObject({ issuer, namedIssuer: undefined });
  });

  it.each(["https://accounts.google.com", "https://accounts.google.com/"])(
    "is accepted where the user names %s",
    async (issuer) => {
      const { found } = await discoverAt(VENDORS.google, { issuer });
      expect(found?.issuer.issuer).toBe("https://accounts.google.com");
    },
  );
});

describe("an issuer that the user names in place of the server's", () => {
  it.each([
    ["slack", "https://slack.com", "https://slack.com/oauth/v2_user/token"],
    ["atlassian", "https://auth.atlassian.com", "https://auth.atlassian.com/tenant-7/token"],
    ["salesforce", "https://login.salesforce.com", "https://login.salesforce.com/services/oauth2/token"],
    ["entra", TENANT, "https://login.microsoftonline.com/1f2e/oauth2/v2.0/token"],
  ] as const)("is refused at %s without the option, and used with it", async (vendor, issuer, tokenEndpoint) => {
    const { named, documents } = VENDORS[vendor];
    const { error } = await discoverAt(VENDORS[vendor]);
    const [claimed] = Object.values(documents);
    expect(error).toMatchObject({
      code: "issuer_mismatch",
      class: "refused",
      remedy: { action: "configure", option: "issuer", value: claimed?.["issuer"] },
    });
    expect(error?.message).toContain(JSON.stringify(claimed?.["issuer"]));
    expect(error?.message).toContain(`must be exactly "${named}"`);
    const { found } = await discoverAt(VENDORS[vendor], { issuer });
    expect(found?.issuer).toMatchObject({ issuer, namedIssuer: named, tokenEndpoint });
  });

  it("is in the hint as a flag to paste, and a template says what to put in its place", async () => {
    const hintAt = async (vendor: Vendor) => cliHint((await discoverAt(vendor)).error as AgentAuthError).hint;
    expect(await hintAt(VENDORS.slack)).toContain("add --issuer https://slack.com to expect");
    expect(await hintAt(VENDORS.entra)).toContain(
      `--issuer '${TEMPLATE}', with the id of your own tenant in place of {tenantid},`,
    );
  });

  it("is requested before the one that the server names", async () => {
    const { requested } = await discoverAt(VENDORS.salesforce, { issuer: "https://login.salesforce.com" });
    expect(requested.filter((line) => line.includes("acme.my"))).toEqual([]);
  });

  it.each<[string, string, string]>([
    ["a template", TEMPLATE, "in braces"],
    ["a private address", "https://10.0.0.1", "private"],
    ["an address with a query", "https://as.example/?a=b", "query"],
    ["no address", "as.example", "absolute URL"],
  ])("is refused if it is %s", async (_what, issuer, why) => {
    const { error } = await discoverAt(VENDORS.entra, { issuer });
    expect(error).toMatchObject({ code: "bad_address", class: "refused", message: expect.stringContaining(why) });
  });

  it("is the better one of several that the server names", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    scene.mcp.metadata["authorization_servers"] = [other.issuer, scene.issuer.issuer];
    const { found } = await scene.agent({ issuer: scene.issuer.issuer }).discover(scene.mcp.url);
    expect(found?.issuer).toMatchObject({ issuer: scene.issuer.issuer, namedIssuer: undefined });
    expect(other.requests).toEqual([]);
  });
});

describe("metadata that name the user's issuer at the address of another one", () => {
  let scene: Scene;
  let evil: TestIssuer;
  const honest = () => scene.issuer;
  const agent = (options: Partial<AgentClientOptions> = {}) =>
    scene.agent({ trustNamedIssuer: false, issuer: honest().issuer, ...options });
  const claim = (members: Record<string, unknown> = {}) =>
    Object.assign(evil.metadata, { issuer: honest().issuer }, members);

  beforeEach(async () => {
    scene = await startScene();
    evil = await scene.another("evil");
    scene.mcp.metadata["authorization_servers"] = [evil.issuer];
    delete honest().routes[`/pool/${OAUTH}`];
  });

  it("are used if all endpoints have one origin, and the login stores what the server named", async () => {
    claim();
    evil.callback["iss"] = honest().issuer;
    const token = await agent().login(scene.mcp.url);
    expect([token.value, token.issuer]).toEqual(["access-evil-1", honest().issuer]);
    expect((await scene.store.list())[0]).toMatchObject({ issuer: honest().issuer, namedIssuer: evil.issuer });
  });

  it("are used in both steps of a login in two, and the second needs no option", async () => {
    claim();
    const { login, mcp } = scene;
    const first = await agent().beginLogin(mcp.url, login.redirectUri);
    const stored = decodeLogin(encodeLogin({ ...first, profile: "default" }));
    const session = await login.open({ resource: mcp.url, issuer: "", signal: new AbortController().signal });
    const token = await agent({ issuer: undefined }).finishLogin(stored, session);
    expect([token.value, token.issuer]).toEqual(["access-evil-1", honest().issuer]);
    expect((await scene.store.list())[0]).toMatchObject({ namedIssuer: evil.issuer });
  });

  it("are named in the trace of discovery", async () => {
    claim();
    const { trace } = await agent().discover(scene.mcp.url);
    expect(trace.filter(({ used, step }) => used && step === "server metadata")).toEqual([
      expect.objectContaining({
        url: `${evil.issuer}/${OAUTH}`,
        why: "it names the expected issuer in place of this one",
      }),
    ]);
  });

  it("are not read if the name of the issuer does not resolve", async () => {
    const issuer = "https://as.example/pool";
    claim({ issuer });
    const spoofed: typeof fetch = async (input, init) => {
      if (new URL(new Request(input).url).hostname !== "as.example") return fetch(input, init);
      throw new TypeError("fetch failed", { cause: Object.assign(new Error("lookup"), { code: "ENOTFOUND" }) });
    };
    const login = agent({ issuer, fetch: spoofed }).login(scene.mcp.url);
    expect(await pendingError(login)).toMatchObject({ code: "dns_failed", class: "unavailable" });
    expect(evil.requests).toEqual([]);
  });

  it("must have the issuer's origin if what it publishes itself breaks a rule", async () => {
    claim();
    honest().routes[`/pool/${OAUTH}`] = () => ({ json: honest().metadata });
    delete honest().metadata["code_challenge_methods_supported"];
    expect(await pendingError(agent().login(scene.mcp.url))).toMatchObject({ code: "pkce_unsupported" });
    const { code_challenge_methods_supported: _, ...rest } = honest().metadata;
    evil.metadata = { ...rest, code_challenge_methods_supported: ["S256"] };
    expect((await agent().login(scene.mcp.url)).value).toBe("access-as-1");
  });

  it("neither get the client that is registered with the issuer, nor register one for it", async () => {
    const { mcp } = scene;
    honest().routes[`/pool/${OAUTH}`] = () => ({ json: honest().metadata });
    mcp.metadata["authorization_servers"] = [honest().issuer];
    await agent().login(mcp.url);
    delete honest().routes[`/pool/${OAUTH}`];
    mcp.metadata["authorization_servers"] = [evil.issuer];
    claim();
    await agent().login(mcp.url);
    expect(JSON.stringify(evil.requests)).not.toContain("-as-1");
    expect(evil.to("/pool/register")).toHaveLength(1);
    honest().routes[`/pool/${OAUTH}`] = () => ({ json: honest().metadata });
    await agent().login(mcp.url);
    expect(honest().to("/pool/register")).toHaveLength(1);
    expect(JSON.stringify(honest().requests)).not.toContain("client-evil");
  });

  it("are refused if they do not name it", async () => {
    expect(await pendingError(agent().login(scene.mcp.url))).toMatchObject({
      code: "issuer_mismatch",
      class: "refused",
      message: expect.stringContaining(`must name "${honest().issuer}"`),
      remedy: { action: "configure", option: "issuer", value: undefined },
    });
    expect(scene.log.filter((line) => line.includes("POST /pool"))).toEqual([]);
  });
});

describe("a later login without the option", () => {
  let scene: Scene;
  let named: TestIssuer;
  beforeEach(async () => {
    scene = await startScene();
    named = await scene.another("named");
    named.metadata["issuer"] = scene.issuer.issuer;
    scene.mcp.metadata["authorization_servers"] = [named.issuer];
    delete scene.issuer.routes[`/pool/${OAUTH}`];
    await scene.agent({ issuer: scene.issuer.issuer, policy: { allowMissingPkceMetadata: true } }).login(scene.mcp.url);
  });

  it("works while the server names the same issuer, with what was allowed for it", async () => {
    delete named.metadata["code_challenge_methods_supported"];
    expect((await scene.agent().token(scene.mcp.url, { forceRefresh: true })).value).toBe("access-named-2");
    expect((await scene.agent().login(scene.mcp.url)).issuer).toBe(scene.issuer.issuer);
    const { found } = await scene.agent().discover(scene.mcp.url);
    expect(found?.issuer).toMatchObject({ issuer: scene.issuer.issuer, namedIssuer: named.issuer });
  });

  it("is refused if the claim is that of another one that the server names too, which gets nothing", async () => {
    const evil = await scene.another("evil");
    evil.metadata["issuer"] = scene.issuer.issuer;
    named.routes[`/pool/${OAUTH}`] = { status: 404, text: "" };
    scene.mcp.metadata["authorization_servers"] = [evil.issuer, named.issuer];
    expect(await pendingError(scene.agent().login(scene.mcp.url))).toMatchObject({ class: "refused" });
    expect(evil.requests).toEqual([]);
  });

  it("reports that the server names another one, where the option names the issuer", async () => {
    const evil = await scene.another("evil");
    evil.metadata["issuer"] = scene.issuer.issuer;
    const reported: string[] = [];
    const login = () =>
      scene.agent({ issuer: scene.issuer.issuer, onProgress: ({ text }) => reported.push(text) }).login(scene.mcp.url);
    await login();
    expect(reported).toEqual([]);
    scene.mcp.metadata["authorization_servers"] = [evil.issuer];
    await login();
    expect(reported).toEqual([
      expect.stringContaining(`another authorization server than before: "${evil.issuer}", not "${named.issuer}"`),
    ]);
  });

  it("does not have what was allowed where the option names the issuer at another server", async () => {
    const next = await scene.another("next");
    next.metadata["issuer"] = scene.issuer.issuer;
    delete next.metadata["code_challenge_methods_supported"];
    scene.mcp.metadata["authorization_servers"] = [next.issuer];
    const login = scene.agent({ issuer: scene.issuer.issuer }).login(scene.mcp.url);
    expect(await pendingError(login)).toMatchObject({ code: "pkce_unsupported" });
  });

  it("does not have what was allowed for the exception where the server names the issuer itself", async () => {
    scene.issuer.routes[`/pool/${OAUTH}`] = () => ({ json: scene.issuer.metadata });
    delete scene.issuer.metadata["code_challenge_methods_supported"];
    scene.mcp.metadata["authorization_servers"] = [scene.issuer.issuer];
    expect(await pendingError(scene.agent().login(scene.mcp.url))).toMatchObject({ code: "pkce_unsupported" });
  });

  it("works if the server now names the issuer itself", async () => {
    scene.issuer.routes[`/pool/${OAUTH}`] = () => ({ json: scene.issuer.metadata });
    scene.mcp.metadata["authorization_servers"] = [named.issuer, scene.issuer.issuer];
    expect((await scene.agent().login(scene.mcp.url)).value).toBe("access-as-1");
    expect((await scene.store.list())[0]?.namedIssuer).toBeUndefined();
  });

  it("replaces the exception if the option names what the server names now", async () => {
    const next = await scene.another("next");
    scene.mcp.metadata["authorization_servers"] = [next.issuer];
    expect((await scene.agent({ issuer: next.issuer }).login(scene.mcp.url)).issuer).toBe(next.issuer);
  });
});
