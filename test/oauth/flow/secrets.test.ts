import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { Secret } from "../../../src/redact.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";
import { shownBy } from "../../helpers/shown.js";

const CANARY = /canary/i;

/** A scene in which every secret says "canary". */
async function planted(): Promise<Scene & { options: Partial<AgentClientOptions> }> {
  const scene = await startScene();
  const { issuer, login } = scene;
  issuer.registrationAnswer = { client_secret: "canary-client-secret", client_secret_expires_at: 0 };
  issuer.tokenAnswer = { access_token: "canary-access-token", refresh_token: "canary-refresh-token" };
  scene.mcp.accepts = (token) => token === "canary-access-token";
  login.alter = (callback) => {
    callback.set("code", "canary-code");
    return callback;
  };
  return { ...scene, options: { client: { clientId: "id", clientSecret: "canary-client-secret" } } };
}

describe("no secret is shown", () => {
  it("by a token: only its value is one", async () => {
    const { agent, mcp } = await planted();
    const token = await agent().token(mcp.url);
    expect(token.value).toBe("canary-access-token");
    expect(shownBy(token)).not.toMatch(CANARY);
    expect(shownBy({ ...token })).not.toMatch(CANARY);
    expect(shownBy(structuredClone({ ...token }))).not.toMatch(CANARY);
  });

  it("by an agent, its store or its status", async () => {
    const { agent, mcp, options, store } = await planted();
    const one = agent(options);
    await one.token(mcp.url);
    expect(shownBy(one)).not.toMatch(CANARY);
    expect(shownBy(await store.list())).not.toMatch(CANARY);
    expect(shownBy(await one.status())).not.toMatch(CANARY);
    expect(shownBy(await one.discover(mcp.url))).not.toMatch(CANARY);
  });

  it("by a grant or a client record", () => {
    const grant = madeGrant({
      client: madeClient({ clientSecret: new Secret("canary-client-secret") }),
      tokens: {
        ...madeGrant().tokens,
        accessToken: new Secret("canary-access-token"),
        refreshToken: new Secret("canary-refresh-token"),
        idToken: new Secret("canary-id-token"),
      },
    });
    expect(shownBy(grant)).not.toMatch(CANARY);
    expect(shownBy(grant.client)).not.toMatch(CANARY);
  });

  it("by a trace or an event of a whole life: login, refresh, introspection, logout", async () => {
    const { agent, mcp, options, clock, issuer } = await planted();
    const heard: unknown[] = [];
    delete issuer.metadata["revocation_endpoint"];
    const one = agent({ ...options, onTrace: (entry) => heard.push(entry), onEvent: (event) => heard.push(event) });
    await one.token(mcp.url);
    await clock.sleep(3_600_000, new AbortController().signal);
    await one.token(mcp.url);
    await one.introspect(mcp.url);
    await one.disconnect(mcp.url);
    expect(heard.length).toBeGreaterThan(10);
    expect(shownBy(heard)).not.toMatch(CANARY);
  });
});

/** Bodies that repeat to the client what it sent, and what it must not show. */
const ECHO = (request: { body: string; headers: { authorization?: string | undefined } }): Record<string, string> => {
  const form = new URLSearchParams(request.body);
  const sent = [
    ...form.values(),
    atob(request.headers.authorization?.replace("Basic ", "") ?? ""),
    "canary-client-secret",
  ];
  return { error_description: sent.join(" "), access_token: "canary-echoed-token", hint: sent.join(" ") };
};

const replies: [string, Reply][] = [
  ["an answer without a token type", { json: { access_token: "canary-access-token" } }],
  ["an answer with a token that is none", { json: { access_token: "canary access token", token_type: "Bearer" } }],
  ["a list", { json: ["canary-access-token"] }],
  ["cut JSON", { headers: { "content-type": "application/json" }, text: '{"access_token":"canary-access-token","tok' }],
  [
    "a member twice",
    {
      headers: { "content-type": "application/json" },
      text: '{"access_token":"canary-access-token","access_token":"canary-2"}',
    },
  ],
  [
    "a form with a member twice",
    {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      text: "access_token=canary-access-token&access_token=canary-2",
    },
  ],
  ["a page", { headers: { "content-type": "text/html" }, text: "<p>canary-access-token</p>" }],
  [
    "HTTP 500 with a token in it",
    { status: 500, json: { error: "server_error", access_token: "canary-access-token" } },
  ],
  ["HTTP 403 with a page", { status: 403, text: "canary-access-token" }],
  ["HTTP 202", { status: 202, json: { access_token: "canary-access-token", token_type: "Bearer" } }],
  ["a challenge", { status: 401, headers: { "www-authenticate": 'Basic realm="canary-access-token"' }, text: "" }],
  ["a redirect", { status: 307, headers: { location: "https://evil.example/?code=canary-code" }, text: "" }],
  ["a connection that breaks", reset],
  ["silence", silence],
];

describe("no secret is shown by an error", () => {
  it.each(replies)("of a login or a refresh with %s", async (what, reply) => {
    const { agent, mcp, options, issuer, clock } = await planted();
    const one = agent({ ...options, timeoutMs: what === "silence" ? 1_000 : 60_000 });
    const answer = issuer.routes["/pool/token"];
    issuer.routes["/pool/token"] = reply;
    const first = await one.login(mcp.url).catch((error: unknown) => error);
    expect(first).toBeInstanceOf(Error);
    expect(shownBy(first)).not.toMatch(CANARY);
    if (answer) issuer.routes["/pool/token"] = answer;
    await one.login(mcp.url);
    await clock.sleep(3_600_000, new AbortController().signal);
    issuer.routes["/pool/token"] = reply;
    // A refresh takes what it can out of a faulty answer.
    const second = await one.token(mcp.url, { login: false }).catch((error: unknown) => error);
    expect(shownBy(second)).not.toMatch(CANARY);
  });

  it("whose text repeats what was sent: code, verifier, client secret, tokens", async () => {
    const { agent, mcp, options, issuer, clock, login } = await planted();
    const one = agent(options);
    const answer = issuer.routes["/pool/token"];
    const errors: unknown[] = [];
    const failed = async (work: Promise<unknown>) => errors.push(await work.catch((error: unknown) => error));
    const echo = (code: string) => (request: Parameters<typeof ECHO>[0]) => ({
      status: 400,
      json: { ...ECHO(request), error: code },
    });
    issuer.routes["/pool/token"] = echo("invalid_request");
    await failed(one.login(mcp.url));
    const verifier = issuer.form("/pool/token").get("code_verifier") ?? "";
    if (answer) issuer.routes["/pool/token"] = answer;
    await one.login(mcp.url);
    issuer.routes["/pool/introspect"] = echo("invalid_request");
    await failed(one.introspect(mcp.url));
    await clock.sleep(3_600_000, new AbortController().signal);
    issuer.routes["/pool/token"] = echo("invalid_request");
    await failed(one.token(mcp.url));
    issuer.routes["/pool/token"] = echo("invalid_grant");
    await failed(one.token(mcp.url, { login: false }));
    issuer.routes["/pool/revoke"] = echo("invalid_request");
    errors.push((await one.disconnect(mcp.url)).error);
    login.alter = () => new URLSearchParams({ state: "canary-state", code: "canary-code" });
    await failed(one.login(mcp.url));
    expect(errors).toHaveLength(6);
    for (const error of errors) {
      expect(error).toBeInstanceOf(Error);
      expect(shownBy(error)).not.toMatch(CANARY);
    }
    expect(verifier).not.toBe("");
    expect(shownBy(errors)).not.toContain(verifier);
  });

  it("whose code is the secret", async () => {
    const { agent, mcp, options, issuer } = await planted();
    issuer.routes["/pool/token"] = { status: 400, json: { error: "canary-client-secret" } };
    const error = await agent(options)
      .login(mcp.url)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(shownBy(error)).not.toMatch(CANARY);
  });

  it("of a callback", async () => {
    for (const change of [
      { iss: "https://evil.example" },
      { state: "another" },
      { error: "access_denied", error_description: "no" },
      { error: "server_error" },
    ]) {
      const { agent, mcp, login } = await planted();
      login.alter = (callback) =>
        new URLSearchParams({ ...Object.fromEntries(callback), code: "canary-code", ...change });
      const error = await agent()
        .login(mcp.url)
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      expect(shownBy(error)).not.toMatch(CANARY);
      expect(shownBy(login.outcomes)).not.toMatch(CANARY);
    }
  });

  it.each<[string, Record<string, unknown>]>([
    ["no client id", { client_id: undefined }],
    ["a secret that is none", { client_secret: ["canary-client-secret"] }],
    ["a long secret", { client_secret: `canary${"x".repeat(9000)}` }],
    ["another redirect address", { redirect_uris: ["https://evil.example/"] }],
    ["a way to authenticate that is none", { token_endpoint_auth_method: "mac" }],
  ])("of a registration with %s", async (_what, over) => {
    const { agent, mcp, issuer } = await planted();
    issuer.registrationAnswer = { ...issuer.registrationAnswer, ...over };
    const error = await agent()
      .login(mcp.url)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(shownBy(error)).not.toMatch(CANARY);
  });
});
