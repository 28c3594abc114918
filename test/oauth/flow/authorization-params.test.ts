import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import {
  checkAuthorizationParam,
  FLOW_PARAMETERS,
  knownIssuer,
  paramsText,
} from "../../../src/oauth/model/authorization-params.js";
import { madeGrant } from "../../helpers/grant.js";
import { type Scene, startScene } from "../../helpers/issuer.js";

const OFFLINE = { access_type: "offline" };

const failureOf = (work: Promise<unknown>) => work.catch((error: unknown) => error);

/** The parameters of the last authorization request. */
const sent = ({ login }: Scene) => Object.fromEntries(login.urls.at(-1)?.searchParams ?? []);

/** A scene whose issuer lists offline_access. */
async function offlineScene(): Promise<Scene> {
  const scene = await startScene();
  scene.issuer.metadata["scopes_supported"] = ["offline_access"];
  return scene;
}

describe("authorization parameters", () => {
  it("of a client are sent, stored with the login, listed, and sent at the next login of another client", async () => {
    const scene = await startScene();
    await scene.agent({ authorizationParams: OFFLINE }).login(scene.mcp.url);
    expect(sent(scene)).toMatchObject(OFFLINE);
    const [login] = await scene.agent().status();
    expect(login?.exceptions).toEqual([{ option: "authorizationParams", value: "access_type=offline" }]);
    await scene.agent().login(scene.mcp.url);
    expect(sent(scene)).toMatchObject(OFFLINE);
  });

  it("of one login replace those of the client of the same name, and an empty one leaves it out", async () => {
    const scene = await startScene();
    const agent = scene.agent({ authorizationParams: { ...OFFLINE, hd: "corp.example" } });
    await agent.login(scene.mcp.url, { authorizationParams: { access_type: "online", hd: "" } });
    expect(sent(scene)).toMatchObject({ access_type: "online" });
    expect(sent(scene)).not.toHaveProperty("hd");
  });

  it("are not sent to another issuer than that of the login that they are stored with", async () => {
    const scene = await startScene();
    await scene.agent({ authorizationParams: OFFLINE }).login(scene.mcp.url);
    const [grant] = await scene.store.list();
    if (!grant) throw new Error("no login");
    await scene.store.save({ ...grant, issuer: "https://other.example", generation: 9 }, grant.generation);
    await scene.agent().login(scene.mcp.url);
    expect(sent(scene)).not.toHaveProperty("access_type");
  });

  it("belong to a login in two steps", async () => {
    const scene = await startScene();
    const redirectUri = "https://app.example/callback";
    const agent = scene.agent({ loginSecret: "0123456789abcdef0123456789abcdef" });
    const options = { redirectUri, authorizationParams: OFFLINE };
    const { url, saved, cookie } = await agent.startLogin(scene.mcp.url, options);
    expect(Object.fromEntries(new URL(url).searchParams)).toMatchObject(OFFLINE);
    const response = await fetch(url, { redirect: "manual" });
    const callback = response.headers.get("location") ?? "";
    await agent.handleCallback(callback, { saved, cookie: cookie.split(";")[0] });
    expect((await scene.store.list())[0]?.authorizationParams).toEqual(OFFLINE);
  });

  it("are sent with the request of a device login, except empty ones", async () => {
    const { agent, mcp, issuer } = await startScene();
    issuer.metadata["device_authorization_endpoint"] = `${issuer.issuer}/device`;
    await failureOf(agent({ authorizationParams: { audience: "api", prompt: "" } }).beginDeviceLogin(mcp.url));
    const form = new URLSearchParams(issuer.to("/pool/device")[0]?.body);
    expect([form.get("audience"), form.has("prompt")]).toEqual(["api", false]);
  });

  const ITSELF = "each login chooses it itself";
  const OF_FLOW: Record<string, string> = {
    response_type: ITSELF,
    response_mode: ITSELF,
    client_id: "the option client does",
    client_secret: "the option client does",
    client_assertion: "the option client does",
    client_assertion_type: "the option client does",
    redirect_uri: "the option redirectUri does",
    scope: "the option scope does",
    state: ITSELF,
    nonce: ITSELF,
    code_challenge: ITSELF,
    code_challenge_method: ITSELF,
    resource: "the option resource does",
    request: ITSELF,
    request_uri: ITSELF,
    login_hint: "the option loginHint does",
    dpop_jkt: "the option dpop does",
  };

  it("cannot set those of the flow", async () => {
    const { agent, mcp } = await startScene();
    expect(FLOW_PARAMETERS).toEqual(Object.keys(OF_FLOW));
    for (const [name, why] of Object.entries(OF_FLOW)) {
      const options = { authorizationParams: { [name]: "x" } };
      const error = new TypeError(`authorizationParams cannot set ${name}: ${why}`);
      expect(() => agent(options)).toThrow(error);
      expect(await failureOf(agent().login(mcp.url, options))).toEqual(error);
    }
    expect(() => checkAuthorizationParam("scope", "x", (option) => `--${option}`)).toThrow(
      "cannot set scope: --scope does",
    );
  });

  const NAME = 'a name has at most 64 letters, digits, "-", "." and "_", a letter first (RFC 6749 appendix A)';
  const VALUE = "a value is a string of at most 1024 characters";

  it.each([
    ["a name with a separator", { "a&b": "x" }, `"a&b": ${NAME}`],
    ["a name with a line break", { "a\n": "x" }, `"a\\n": ${NAME}`],
    ["a name that begins with a digit", { "1a": "x" }, `"1a": ${NAME}`],
    ["a name of 65 characters", { ["a".repeat(65)]: "x" }, `"${"a".repeat(65)}": ${NAME}`],
    ["an empty name", { "": "x" }, `"": ${NAME}`],
    ["a name that every object has", JSON.parse('{"__proto__":"x"}') as Record<string, string>, `"__proto__": ${NAME}`],
    ["a value that is too long", { a: "x".repeat(1025) }, `a: ${VALUE}`],
    ["a value that is no string", { a: 1 } as unknown as Record<string, string>, `a: ${VALUE}`],
  ])("cannot have %s", async (_what, authorizationParams, why) => {
    const { agent } = await startScene();
    expect(() => agent({ authorizationParams })).toThrow(new TypeError(`authorizationParams cannot set ${why}`));
  });

  it("can have names of 64 characters, and values of 1,024", async () => {
    const { agent } = await startScene();
    const authorizationParams = { ["a-._9Z".padEnd(64, "x")]: "x".repeat(1024), constructor: "x" };
    expect(() => agent({ authorizationParams })).not.toThrow();
  });
});

describe("a forced consent", () => {
  /** A scene whose first login was made without one. @param answer of that login */
  async function tried(answer: Record<string, unknown>): Promise<Scene> {
    const scene = await offlineScene();
    scene.issuer.tokenAnswer = answer;
    await scene.agent().login(scene.mcp.url, { authorizationParams: { prompt: "" } });
    expect(sent(scene)).not.toHaveProperty("prompt");
    return scene;
  }
  const next: Partial<AgentClientOptions> = {};

  it("is left out once a login without it gave a refresh token", async () => {
    const scene = await tried({});
    const [grant] = await scene.store.list();
    expect(grant?.needsConsent).toBe(false);
    await scene.store.save({ ...madeFrom(grant), authorizationParams: undefined }, grant?.generation);
    await scene.agent(next).login(scene.mcp.url);
    expect(sent(scene)).not.toHaveProperty("prompt");
  });

  it("is sent again once a login without it gave none, and that stays known", async () => {
    const scene = await tried({ refresh_token: undefined });
    const [grant] = await scene.store.list();
    expect(grant?.needsConsent).toBe(true);
    await scene.store.save({ ...madeFrom(grant), authorizationParams: undefined }, grant?.generation);
    for (let nth = 0; nth < 2; nth++) {
      await scene.agent(next).login(scene.mcp.url);
      expect(sent(scene)).toMatchObject({ prompt: "consent" });
    }
    expect((await scene.store.list())[0]?.needsConsent).toBe(true);
  });

  it("is what the method of a login hears of, unless a parameter of the user forces it", async () => {
    const scene = await offlineScene();
    for (const prompt of [undefined, "", "consent"])
      await scene.agent({ authorizationParams: prompt === undefined ? {} : { prompt } }).login(scene.mcp.url);
    expect(scene.login.consents).toEqual([true, false, false]);
  });
});

/** @throws Error if there is no grant */
function madeFrom<T extends { generation: number }>(grant: T | undefined): T {
  if (!grant) throw new Error("no login");
  return { ...grant, generation: grant.generation + 1 };
}

describe("a login without a refresh token that has expired", () => {
  const expired = (over: object) => {
    const { tokens } = madeGrant();
    return madeGrant({ ...over, tokens: { ...tokens, refreshToken: undefined, expiresAt: 1_700_000_000_001 } });
  };

  it.each([
    ["https://accounts.google.com", undefined, { access_type: "offline", prompt: "consent" }],
    ["https://accounts.google.com", OFFLINE, { access_type: "offline", prompt: "consent" }],
    ["https://accounts.google.com", { access_type: "offline", prompt: "consent" }, undefined],
    ["https://accounts.google.com.evil.example", undefined, undefined],
    ["https://as.example/pool", undefined, undefined],
  ])("of %s with %j names the parameters %j", async (issuer, authorizationParams, expected) => {
    const { agent, store } = await startScene();
    const grant = expired({ issuer, authorizationParams });
    await store.save(grant, undefined);
    const error = await failureOf(agent().token(grant.server, { login: false }));
    expect(error).toMatchObject({ code: "login_required", remedy: { action: "login", server: grant.server } });
    expect((error as { remedy: { authorizationParams?: object } }).remedy.authorizationParams).toEqual(expected);
  });
});

describe("what is known of an issuer", () => {
  it.each([
    "login.microsoftonline.com",
    "login.microsoft.com",
    "login.windows.net",
    "sts.windows.net",
    "login.microsoftonline.us",
    "login.usgovcloudapi.net",
    "login-us.microsoftonline.com",
    "login.partner.microsoftonline.cn",
    "login.chinacloudapi.cn",
    "sts.chinacloudapi.cn",
    "login.microsoftonline.de",
  ])("is that %s needs no consent", (host) => {
    expect(knownIssuer(`https://${host}/tenant/v2.0`)).toEqual({ needsNoConsent: true });
    expect(knownIssuer(`http://${host}/`)).toEqual({});
    expect(knownIssuer(`https://a.${host}/`)).toEqual({});
  });

  it("is nothing of any other one", () => {
    expect(["https://as.example", "https://constructor"].map(knownIssuer)).toEqual([{}, {}]);
  });

  it("is a text of parameters where they are shown", () => {
    expect(paramsText({ access_type: "offline", prompt: "a b" })).toBe("access_type=offline&prompt=a+b");
  });
});
