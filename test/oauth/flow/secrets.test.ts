import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { Secret } from "../../../src/redact.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";
import type { SeenRequest } from "../../helpers/server.js";
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
});

/** The secrets that a request sent to the issuer, in each form in which it could repeat them. */
function secretsIn({ body, headers }: SeenRequest): string[] {
  const form = new URLSearchParams(body);
  const names = ["code", "code_verifier", "refresh_token", "client_secret", "token", "device_code", "assertion"];
  const basic = headers.authorization?.replace("Basic ", "");
  const decoded = basic === undefined ? [] : [basic, atob(basic).split(":")[1] ?? ""];
  return [...names.flatMap((name) => form.getAll(name)), ...decoded].filter(Boolean);
}

const JSON_TYPE = { "content-type": "application/json" };

/** Where a server may repeat what it received. */
const places: [string, (secret: string) => Reply][] = [
  ["expires_in", (said) => ({ json: { access_token: "another-token", token_type: "Bearer", expires_in: said } })],
  ["the token type", (said) => ({ json: { access_token: "another-token", token_type: said } })],
  ["its error", (said) => ({ status: 400, json: { error: said } })],
  ["the words of its error", (said) => ({ status: 400, json: { error: "no", error_description: `not ${said}` } })],
  ["the type of its content", (said) => ({ headers: { "content-type": `text/${said}` }, text: "x" })],
  ["the coding of its content", (said) => ({ headers: { ...JSON_TYPE, "content-encoding": `a,${said}` }, text: "{}" })],
  ["the address that it redirects to", (said) => ({ status: 307, headers: { location: `/${said}` }, text: "" })],
  ["a name that comes twice", (said) => ({ headers: JSON_TYPE, text: `{"${said}":1,"${said}":2}` })],
  [
    "a name of a form that comes twice",
    (said) => ({ headers: { "content-type": "application/x-www-form-urlencoded" }, text: `${said}=1&${said}=2` }),
  ],
];

describe.each(places)("a secret that an issuer repeats in %s", (_where, reply) => {
  it.each(["client_secret_basic", "client_secret_post"])("is not shown, with %s", async (method) => {
    const { agent, mcp, issuer, clock } = await startScene();
    issuer.metadata["token_endpoint_auth_methods_supported"] = [method];
    await agent().login(mcp.url);
    await clock.sleep(3_600_000, new AbortController().signal);
    let heard = 0;
    // One secret at a time, for each of those in a request.
    for (let nth = 0; nth < 4; nth++) {
      let sent: string[] = [];
      for (const path of ["/pool/token", "/pool/introspect", "/pool/revoke"]) {
        issuer.routes[path] = (request) => {
          sent = secretsIn(request);
          return reply(sent[nth % sent.length] ?? "");
        };
      }
      const one = agent();
      const works = [
        () => one.token(mcp.url, { login: false }),
        () => one.introspect(mcp.url),
        () => one.login(mcp.url),
      ];
      for (const work of works) {
        const outcome = await work().catch((error: unknown) => error);
        heard += sent.length;
        for (const secret of sent) expect(shownBy(outcome)).not.toContain(secret);
      }
    }
    expect(heard).toBeGreaterThan(10);
    const out = await agent().disconnect(mcp.url);
    expect(out.removed).toBe(true);
    expect(shownBy(out)).not.toMatch(/access-as|refresh-as|secret-as/);
  });

  it("is not shown where it is a device's code, an assertion, or a client's secret in the form that Basic sends", async () => {
    const { agent, mcp, issuer } = await startScene();
    const payload = Buffer.from(JSON.stringify({ aud: issuer.issuer, exp: 4_102_444_800 })).toString("base64url");
    const assertion = `eyJhbGciOiJub25lIn0.${payload}.c2lnbmF0dXJl`;
    const client = {
      clientId: "known",
      clientSecret: "a secret/with+signs",
      authMethod: "client_secret_basic",
    } as const;
    const ways: Partial<AgentClientOptions>[] = [
      { flow: "device" },
      { client, grant: { type: "jwt_bearer", assertion: async () => assertion, workload: "ci" } },
    ];
    let heard = 0;
    for (const way of ways) {
      for (let nth = 0; nth < 3; nth++) {
        let sent: string[] = [];
        issuer.routes["/pool/token"] = (request) => {
          sent = secretsIn(request);
          return reply(sent[nth % sent.length] ?? "");
        };
        const outcome = await agent({ store: memoryStore(), ...way })
          .token(mcp.url)
          .catch((error: unknown) => error);
        heard += sent.length;
        for (const secret of sent) expect(shownBy(outcome)).not.toContain(secret);
      }
    }
    expect(heard).toBeGreaterThan(8);
  });
});

describe("an issuer's code", () => {
  it.each(["timeout", "connection_reset", "bad_json", "x".repeat(65)])(
    "is not taken for one of ours: %s",
    async (error) => {
      const { agent, mcp, issuer, clock } = await startScene();
      await agent().login(mcp.url);
      await clock.sleep(3_600_000, new AbortController().signal);
      issuer.routes["/pool/token"] = { status: 429, json: { error } };
      expect(await pendingError(agent().token(mcp.url))).toMatchObject({ code: "http_error", class: "unavailable" });
      expect(issuer.to("/pool/token")).toHaveLength(2);
    },
  );

  it("that asks for a login does not end a token that still lives", async () => {
    const { agent, mcp, issuer, clock, login } = await startScene();
    await agent().login(mcp.url);
    await clock.sleep(3_570_000, new AbortController().signal);
    issuer.routes["/pool/token"] = { status: 400, json: { error: "login_required" } };
    expect((await agent().token(mcp.url)).value).toBe("access-as-1");
    expect(login.opened).toHaveLength(1);
  });
});

describe("an issuer's words", () => {
  const wordsOf = async (words: (request: SeenRequest) => string) => {
    const { agent, mcp, issuer } = await startScene();
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
    issuer.routes["/pool/token"] = (request) => ({
      status: 400,
      json: { error: "invalid_request", error_description: words(request) },
    });
    const client = { clientId: "service", clientSecret: "se+cret/with space", issuer: issuer.issuer };
    const error = await agent({ client })
      .login(mcp.url)
      .catch((thrown: unknown) => thrown);
    return String((error as Error).message);
  };

  it("about ways to authenticate stay readable", async () => {
    const words = "use Basic authentication, or a Bearer token; code=expected";
    expect(await wordsOf(() => words)).toContain(words);
  });

  it.each<[string, (secret: string) => string]>([
    ["encoded for an address", encodeURIComponent],
    ["encoded for a form", (secret) => new URLSearchParams({ a: secret }).toString().slice(2)],
    ["in base64", (secret) => Buffer.from(secret).toString("base64")],
    ["in base64url", (secret) => Buffer.from(secret).toString("base64url")],
  ])("show no secret of the request %s", async (_how, form) => {
    for (const secret of ["se+cret/with space", "the code"]) {
      let said = "";
      const message = await wordsOf(({ body }) => {
        said = form(secret === "the code" ? (new URLSearchParams(body).get("code") ?? "") : secret);
        return `not ${said}`;
      });
      expect(said.length).toBeGreaterThan(6);
      expect(message).not.toContain(said.replace(/=+$/, ""));
      expect(message).toContain("not ********");
    }
  });
});
