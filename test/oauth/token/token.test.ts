import nock from "nock";
import { describe, expect, it } from "vitest";
import { NO_RESOURCE } from "../../../src/oauth/model/resource.js";
import { refreshTokens } from "../../../src/oauth/token/token.js";
import { captureError, pendingError } from "../../helpers/captured.js";
import { unsignedJwt } from "../../helpers/client-keys.js";
import { FakeClock } from "../../helpers/clock.js";
import { madeGrant } from "../../helpers/grant.js";
import { type Reply, type Scene, startScene } from "../../helpers/issuer.js";
import { useNock } from "../../helpers/nock.js";
import { fc } from "../../helpers/properties.js";
import { tokenCall } from "./token-call.js";

const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" };

/** Signs in where the token endpoint gives this answer. */
async function loginWith(reply: Reply, options: Parameters<Scene["agent"]>[0] = {}) {
  const scene = await startScene();
  scene.issuer.routes["/pool/token"] = reply;
  const work = scene.agent(options).login(scene.mcp.url);
  const token = await work.catch(() => undefined);
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown as { code: string; class: string; message: string; hint?: string },
  );
  return { ...scene, token, error: captureError(error) };
}

/** Signs in where the token answer has these members; undefined leaves one out. */
const loginWithAnswer = (over: Record<string, unknown>) =>
  loginWith({ json: { access_token: "access-1", token_type: "Bearer", expires_in: 3600, ...over } });

describe("the code's token request", () => {
  it("takes tokens with status 201", async () => {
    const { token } = await loginWith({ status: 201, json: { access_token: "access-1", token_type: "Bearer" } });
    expect(token?.value).toBe("access-1");
  });

  it("sends the code with its verifier and redirect address, as a form", async () => {
    const { agent, issuer, login, mcp } = await startScene();
    await agent().login(mcp.url);
    const request = issuer.to("/pool/token")[0];
    expect(request?.headers["content-type"]).toMatch(/^application\/x-www-form-urlencoded/);
    expect(Object.fromEntries(issuer.form("/pool/token"))).toEqual({
      grant_type: "authorization_code",
      code: "code-as-1",
      redirect_uri: login.redirectUri,
      code_verifier: expect.stringMatching(/^[\w.~-]{43,128}$/),
      resource: mcp.url,
    });
  });

  it("[20] names the resource in the authorization and every token request, byte for byte (2025-06-18)", async () => {
    for (const spell of [
      (url: string) => url,
      (url: string) => url.replace("/mcp", ""),
      (url: string) => url.replace("/mcp", "/"),
      (url: string) => `${url}/`,
      (url: string) => url.replace("http://", "HTTP://"),
    ]) {
      const { agent, issuer, login, mcp, clock } = await startScene();
      const resource = spell(mcp.url);
      mcp.metadata["resource"] = resource;
      await agent().login(mcp.url);
      await clock.sleep(3_600_000, new AbortController().signal);
      await agent().token(mcp.url);
      expect(login.requested().getAll("resource")).toEqual([resource]);
      expect(issuer.form("/pool/token", 0).getAll("resource")).toEqual([resource]);
      expect(issuer.form("/pool/token", 1).getAll("resource")).toEqual([resource]);
      expect(issuer.form("/pool/token", 1).get("grant_type")).toBe("refresh_token");
    }
  });

  it("[20] names the resource that the caller puts in its place (2025-06-18)", async () => {
    const { agent, issuer, login, mcp } = await startScene();
    await agent({ resource: "api://other" }).login(mcp.url);
    expect(login.requested().get("resource")).toBe("api://other");
    expect(issuer.form("/pool/token").get("resource")).toBe("api://other");
  });
});

describe("client authentication", () => {
  /** How each request that needs it was authenticated. */
  async function waysOf(scene: Scene, options: Parameters<Scene["agent"]>[0] = {}) {
    const { issuer, mcp, clock } = scene;
    const agent = scene.agent(options);
    await agent.login(mcp.url);
    await clock.sleep(3_600_000, new AbortController().signal);
    await agent.token(mcp.url);
    await agent.introspect(mcp.url);
    await agent.disconnect(mcp.url);
    return ["/pool/token", "/pool/introspect", "/pool/revoke"].flatMap((path) =>
      issuer.to(path).map(({ headers }, nth) => {
        const form = issuer.form(path, nth);
        if (headers.authorization) return form.has("client_secret") ? "both" : "basic";
        return form.get("client_secret") === null ? "none" : "post";
      }),
    );
  }

  it.each([
    ["client_secret_basic", "basic"],
    ["client_secret_post", "post"],
    ["none", "none"],
  ])("uses the registration answer's %s for code, refresh, introspection and both revocations", async (method, way) => {
    const scene = await startScene();
    // The metadata prefers another way: the answer decides.
    const others = ["client_secret_basic", "client_secret_post", "none"].filter((other) => other !== method);
    scene.issuer.metadata["token_endpoint_auth_methods_supported"] = others;
    scene.issuer.registrationAnswer = {
      token_endpoint_auth_method: method,
      client_secret: method === "none" ? undefined : "secret",
      client_secret_expires_at: 0,
    };
    expect(await waysOf(scene)).toEqual([way, way, way, way, way]);
  });

  it("goes by what was requested where the answer does not say", async () => {
    const scene = await startScene();
    scene.issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
    scene.issuer.registrationAnswer = { token_endpoint_auth_method: undefined };
    expect(new Set(await waysOf(scene))).toEqual(new Set(["post"]));
  });

  it("sends any id and secret so that a server that decodes has them back", async () => {
    const { agent, issuer, mcp } = await startScene();
    const text = fc.string({ minLength: 1, unit: fc.constantFrom(..."aZ9:%+ -_.~&=/!'()*ä€😀") });
    let nth = 0;
    await fc.assert(
      fc.asyncProperty(text, text, async (clientId, clientSecret) => {
        const issuerOf = issuer.issuer;
        await agent({ profile: `p${nth}`, client: { clientId, clientSecret, issuer: issuerOf } }).login(mcp.url);
        const header = issuer.to("/pool/token")[nth++]?.headers.authorization ?? "";
        const parts = atob(header.replace("Basic ", ""))
          .split(":")
          .map((part) => new URLSearchParams(`v=${part}`).get("v"));
        expect(parts).toEqual([clientId, clientSecret]);
      }),
      { numRuns: 25 },
    );
  });
});

/** An id token for the client that is registered first; a signature is not looked at. */
function idTokenOf({ issuer }: Pick<Scene, "issuer">, alg: string | undefined, claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const said = { iss: issuer.issuer, sub: "user-1", aud: "client-as-1", iat: 1, exp: 4_000_000_000, ...claims };
  return `${part({ alg })}.${part(said)}.${part({ a: "signature" })}`;
}

describe("the token answer", () => {
  it.each<[unknown, number]>([
    [3600, 3600],
    ["3600", 3600],
    [0.5, 0.5],
    [0, 0],
    ["0", 0],
    [" 60", 60],
    [1e300, 365 * 24 * 3600],
    [40_000_000, 365 * 24 * 3600],
  ])("with expires_in %j holds for %d seconds", async (expiresIn, seconds) => {
    const { token, clock } = await loginWithAnswer({ expires_in: expiresIn });
    expect(token?.expiresAt).toEqual(new Date(clock.epoch() + seconds * 1000));
  });

  it.each([undefined, null, "", [], -5, true, "-5", "3600s", [3600], {}])(
    "with expires_in %j holds until the server says no",
    async (expiresIn) => {
      const { token, agent, mcp, issuer, clock } = await loginWithAnswer({ expires_in: expiresIn });
      expect(token?.expiresAt).toBeUndefined();
      await clock.sleep(1e12, new AbortController().signal);
      expect((await agent().token(mcp.url)).value).toBe("access-1");
      expect(issuer.to("/pool/token")).toHaveLength(1);
    },
  );

  it.each<[string, Record<string, number>, number | undefined]>([
    ["exp", { exp: 600 }, 600],
    ["iat and exp", { iat: 0, exp: 600 }, 600],
    ["an iat before it was sent", { iat: -100, exp: 500 }, 500],
    ["the clock of an issuer that is late", { iat: -3600, exp: -3000 }, 600],
    ["the clock of an issuer that is early", { iat: 3600, exp: 4200 }, 600],
    ["an exp long ago", { exp: -1 }, undefined],
    ["an exp before its iat", { iat: 10, exp: 5 }, undefined],
    ["an exp at its iat", { iat: 10, exp: 10 }, undefined],
    ["an exp after many years", { iat: 0, exp: 1e12 }, 365 * 24 * 3600],
    ["no exp", { iat: 0 }, undefined],
  ])("that is a JWT without expires_in, and with %s, holds for its life", async (_what, claims, seconds) => {
    const now = new FakeClock().epoch() / 1000;
    const fixed = Object.fromEntries(Object.entries(claims).map(([name, at]) => [name, now + at]));
    const { token, clock } = await loginWithAnswer({ access_token: await unsignedJwt(fixed), expires_in: undefined });
    expect(token?.expiresAt).toEqual(seconds && new Date(clock.epoch() + seconds * 1000));
  });

  it.each(["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA", "HS256"])(
    "may have an id token signed with %s, whatever it says of the time",
    async (alg) => {
      const scene = await startScene();
      const idToken = idTokenOf(scene, alg, { iat: 1, nbf: 4_000_000_000, exp: 60 });
      scene.issuer.tokenAnswer = { id_token: idToken };
      await scene.agent().login(scene.mcp.url);
      expect((await scene.store.list())[0]?.tokens.idToken?.reveal()).toBe(idToken);
    },
  );

  it("stores an id token only with the nonce of the request, which is sent with the scope openid", async () => {
    for (const [scope, repeated, isStored] of [
      ["openid tools", (nonce: string | null) => nonce, true],
      ["openid tools", () => "another", false],
      ["openid tools", () => undefined, false],
      ["tools", () => "any", true],
    ] as const) {
      const scene = await startScene();
      scene.issuer.routes["/pool/token"] = () => {
        const nonce = repeated(scene.login.requested().get("nonce"));
        return { json: { ...scene.issuer.tokens(), id_token: idTokenOf(scene, "RS256", { nonce }) } };
      };
      await scene.agent().login(scene.mcp.url, { scope });
      expect(scene.login.requested().get("nonce") !== null).toBe(scope.startsWith("openid"));
      expect((await scene.store.list())[0]?.tokens.idToken !== undefined).toBe(isStored);
    }
  });

  it("with expires_in 0 is for one use, and each further call refreshes once", async () => {
    const { token, agent, mcp, issuer } = await loginWithAnswer({ expires_in: 0, refresh_token: "r" });
    expect(token?.value).toBe("access-1");
    expect(issuer.to("/pool/token")).toHaveLength(1);
    expect((await agent({ login: undefined }).token(mcp.url)).value).toBe("access-1");
    expect(issuer.to("/pool/token")).toHaveLength(2);
    expect((await agent({ login: undefined }).fetch(mcp.url)).status).toBe(200);
    expect(issuer.to("/pool/token")).toHaveLength(3);
    expect(mcp.tokens()).toEqual(["Bearer access-1"]);
  });

  it("with expires_in 0 and no refresh token needs a login for the next call", async () => {
    const { token, agent, mcp } = await loginWithAnswer({ expires_in: 0 });
    expect(token?.value).toBe("access-1");
    expect(await pendingError(agent({ login: undefined }).token(mcp.url))).toMatchObject({ code: "login_required" });
    expect((await agent().fetch(mcp.url)).status).toBe(200);
  });

  it("with expires_in 0 and no refresh token is used by the client that logged in, until its server rejects it", async () => {
    const { agent, mcp, issuer, login } = await startScene();
    issuer.tokenAnswer = { expires_in: 0, refresh_token: undefined };
    const one = agent();
    for (let nth = 0; nth < 3; nth++) expect((await one.fetch(mcp.url)).status).toBe(200);
    expect((await one.token(mcp.url)).value).toBe("access-as-1");
    expect(login.opened).toHaveLength(1);
    expect(await pendingError(agent({ login: undefined }).fetch(mcp.url))).toMatchObject({ code: "login_required" });
    mcp.accepts = (token) => token !== "access-as-1";
    for (let nth = 0; nth < 2; nth++) expect((await one.fetch(mcp.url)).status).toBe(200);
    expect(login.opened).toHaveLength(2);
    expect((await one.token(mcp.url, { forceRefresh: true })).value).toBe("access-as-3");
    expect((await agent().token(mcp.url)).value).toBe("access-as-4");
  });

  it("with a longer life and no refresh token is used until it expires, also by the client that logged in", async () => {
    const { agent, mcp, issuer, login, clock } = await startScene();
    issuer.tokenAnswer = { expires_in: 60, refresh_token: undefined };
    const one = agent();
    await clock.sleep(1, new AbortController().signal);
    for (let nth = 0; nth < 2; nth++) expect((await one.token(mcp.url)).value).toBe("access-as-1");
    await clock.sleep(60_000, new AbortController().signal);
    expect((await one.token(mcp.url)).value).toBe("access-as-2");
    expect(login.opened).toHaveLength(2);
  });

  it("with expires_in 0 and no refresh token is not used again after its rejection, if the login fails", async () => {
    const { agent, mcp, issuer, login } = await startScene();
    issuer.tokenAnswer = { expires_in: 0, refresh_token: undefined };
    const one = agent();
    await one.fetch(mcp.url);
    mcp.accepts = (token) => token !== "access-as-1";
    login.before = () => Promise.reject(new Error("no browser"));
    await expect(one.fetch(mcp.url)).rejects.toThrow();
    const sent = mcp.tokens().length;
    await expect(one.fetch(mcp.url)).rejects.toThrow();
    expect(mcp.tokens()).toHaveLength(sent);
  });

  it.each(["refresh_token", "id_token", "scope"])("may have null for %s, which is as good as nothing", async (name) => {
    const { token, store } = await loginWithAnswer({ [name]: null });
    expect(token?.value).toBe("access-1");
    expect((await store.list())[0]?.tokens.refreshToken).toBeUndefined();
  });

  it("returns the scopes granted, else those requested", async () => {
    expect((await loginWithAnswer({ scope: "a" })).token?.scope).toBe("a");
    const { agent, mcp } = await startScene();
    mcp.metadata["scopes_supported"] = ["b", "c"];
    expect((await agent().login(mcp.url)).scope).toBe("b c");
  });

  it("may separate the scopes by commas: they serve a request for one of them", async () => {
    const { agent, issuer, login, mcp } = await startScene();
    issuer.routes["/pool/token"] = {
      json: { access_token: "access-1", token_type: "bearer", scope: "repo, read:org,gist" },
    };
    expect((await agent().login(mcp.url, { scope: "repo read:org" })).scope).toBe("repo read:org gist");
    expect((await agent().token(mcp.url, { scope: "read:org" })).value).toBe("access-1");
    expect(login.urls).toHaveLength(1);
    issuer.routes["/pool/token"] = { json: { access_token: "access-2", token_type: "bearer", scope: "a,b" } };
    expect((await agent().login(mcp.url, { scope: "a,b" })).scope).toBe("a,b");
  });

  it("takes a list of scopes, and what is none for the requested ones", async () => {
    expect((await loginWithAnswer({ scope: ["a", "b"] })).token?.scope).toBe("a b");
    const { agent, mcp, issuer } = await startScene();
    for (const scope of [[7], { a: 1 }, true]) {
      issuer.tokenAnswer = { scope };
      expect((await agent().login(mcp.url, { scope: "b c" })).scope).toBe("b c");
    }
  });

  it("counts from the answer's own Date where it agrees with our clock, else from ours", async () => {
    for (const [skew, agrees] of [
      [-3000, true],
      [-3_600_000, false],
      [3_600_000, false],
    ] as const) {
      const { agent, mcp, issuer, clock } = await startScene();
      const date = clock.epoch() + skew;
      issuer.routes["/pool/token"] = () => ({
        json: issuer.tokens(1),
        headers: { date: new Date(date).toUTCString() },
      });
      const { expiresAt } = await agent().login(mcp.url);
      expect(expiresAt?.getTime()).toBe((agrees ? date : clock.epoch()) + 3_600_000);
    }
  });

  it("may be form-encoded", async () => {
    const { token, clock } = await loginWith({
      headers: FORM_TYPE,
      text: "access_token=a-1&token_type=bearer&expires_in=60&scope=a+b",
    });
    expect(token).toMatchObject({ value: "a-1", scope: "a b", expiresAt: new Date(clock.epoch() + 60_000) });
  });

  it("may say an error form-encoded, or with HTTP 200", async () => {
    const answers: Reply[] = [
      { status: 400, headers: FORM_TYPE, text: "error=invalid_grant&error_description=no" },
      { status: 200, headers: FORM_TYPE, text: "error=invalid_grant&error_description=no" },
      { status: 200, json: { error: "invalid_grant", error_description: "no" } },
    ];
    for (const answer of answers) {
      const { error, store } = await loginWith(answer);
      expect(error).toMatchObject({ code: "invalid_grant", class: "auth", message: expect.stringContaining(": no") });
      expect(await store.list()).toEqual([]);
    }
  });

  it("is refused with a member twice, in JSON and as a form", async () => {
    const json = '{"access_token":"a","access_token":"b","token_type":"Bearer"}';
    const asJson = await loginWith({ headers: { "content-type": "application/json" }, text: json });
    expect(asJson.error).toMatchObject({ code: "bad_json", class: "refused" });
    const asForm = await loginWith({ headers: FORM_TYPE, text: "access_token=a&access_token=b&token_type=Bearer" });
    expect(asForm.error).toMatchObject({ code: "bad_token_answer", class: "refused" });
  });

  it.each<[string, Reply]>([
    ["HTTP 503 with a challenge", { status: 503, headers: { "www-authenticate": 'Basic realm="proxy"' }, text: "" }],
    ["HTTP 400 temporarily_unavailable", { status: 400, json: { error: "temporarily_unavailable" } }],
  ])("is no answer, and may come later, with %s", async (_what, reply) => {
    const { error, store, issuer } = await loginWith(reply);
    expect(error).toMatchObject({ class: "unavailable" });
    expect(await store.list()).toEqual([]);
    expect(issuer.to("/pool/token")).toHaveLength(1);
  });

  it("goes by the error in the body, not by the challenge beside it", async () => {
    const { error } = await loginWith({
      status: 401,
      headers: { "www-authenticate": 'Basic realm="as"' },
      json: { error: "invalid_client" },
    });
    expect(error).toMatchObject({ code: "invalid_client", class: "auth", status: 401 });
  });
});

describe("a refresh of a login with several scopes", () => {
  useNock();

  it.each([
    ["at first", {}, "a/read", {}, undefined],
    ["where it has to", { refreshesWithScope: true }, "a/read", { scope: "a/read offline_access" }, true],
    ["after a token for others", {}, "other/read", {}, true],
  ])("names the scopes %s", async (_when, known, granted, named, next) => {
    const form = { grant_type: "refresh_token", refresh_token: "refresh-token-1", client_id: "client-1", ...named };
    const answer = { access_token: "access-2", token_type: "Bearer", scope: granted };
    nock("https://as.example").post("/token", form).reply(200, answer);
    const grant = madeGrant({ requestedScope: "a/read offline_access", resource: NO_RESOURCE, ...known });
    expect(
      (await refreshTokens(tokenCall("https://as.example", { client: { clientId: "client-1" } }), grant)).form
        .refreshesWithScope,
    ).toBe(next);
  });
});
