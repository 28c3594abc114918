import { inspect } from "node:util";
import { it as base, describe, expect } from "vitest";
import { clientCredentialsTokens, jwtBearerTokens } from "../../../src/oauth/machine/machine-request.js";
import { type ExchangeRequest, exchangeTokens } from "../../../src/oauth/token/exchange.js";
import { checkEndpoint, type TokenCall } from "../../../src/oauth/token/token.js";
import { quote, Secret } from "../../../src/redact.js";
import { pendingError } from "../../helpers/captured.js";
import { unsignedJwt } from "../../helpers/client-keys.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { loginAt } from "../../helpers/remedy.js";
import { tokenCall } from "./token-call.js";

const TYPE = "urn:ietf:params:oauth:token-type:";
const ACCESS = `${TYPE}access_token`;
const TOKEN = "/pool/token";
const SUBJECT = "subject-token-1";
const SECRET = "client-secret-1";

const client = { clientId: "service", clientSecret: SECRET };

/** Tests with an issuer that exchanges tokens. */
const it = base.extend<{
  scene: Scene;
  answer: { json: Record<string, unknown> };
  call: TokenCall;
  exchange: (request?: Partial<ExchangeRequest>) => ReturnType<typeof exchangeTokens>;
  exchanges: () => URLSearchParams[];
}>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of the fixtures from the pattern.
  scene: async ({}, use) => {
    const scene = await startScene();
    const grants = scene.issuer.metadata["grant_types_supported"] as string[];
    grants.push("urn:ietf:params:oauth:grant-type:token-exchange");
    await use(scene);
  },
  /** The response of the token endpoint to an exchange. */
  answer: [
    async ({ scene }, use) => {
      const members = { access_token: "exchanged-1", issued_token_type: ACCESS, token_type: "Bearer" };
      const answer = { json: { ...members, expires_in: 600, scope: "a" } };
      scene.issuer.routes[TOKEN] = (request, nth) =>
        new URLSearchParams(request.body).get("grant_type")?.includes("exchange")
          ? answer
          : { json: scene.issuer.tokens(nth) };
      await use(answer);
    },
    { auto: true },
  ],
  call: ({ scene }, use) => use(tokenCall(scene.issuer.issuer, { client, clock: scene.clock })),
  exchange: ({ call }, use) =>
    use((request) => exchangeTokens(call, { subjectToken: SUBJECT, audience: "https://api.example", ...request })),
  /** The forms of the exchanges so far. */
  exchanges: ({ scene }, use) =>
    use(() =>
      scene.issuer.to(TOKEN).flatMap(({ body }) => {
        const form = new URLSearchParams(body);
        return form.get("grant_type")?.includes("exchange") ? [form] : [];
      }),
    ),
});

describe("a token exchange", () => {
  it("sends both tokens with their types, and every audience and resource", async ({ exchange, exchanges }) => {
    await exchange({
      subjectToken: new Secret(SUBJECT),
      subjectTokenType: `${TYPE}id_token`,
      actorToken: "actor-token-1",
      actorTokenType: `${TYPE}jwt`,
      audience: ["one", "two"],
      resource: ["https://r1.example", "https://r2.example"],
      scope: "a b",
      requestedTokenType: ACCESS,
    });
    expect([...(exchanges()[0] ?? [])]).toEqual([
      ["subject_token", SUBJECT],
      ["subject_token_type", `${TYPE}id_token`],
      ["actor_token", "actor-token-1"],
      ["actor_token_type", `${TYPE}jwt`],
      ["scope", "a b"],
      ["requested_token_type", ACCESS],
      ["audience", "one"],
      ["audience", "two"],
      ["resource", "https://r1.example"],
      ["resource", "https://r2.example"],
      ["grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"],
    ]);
  });

  it("takes tokens for access tokens where nothing else is said", async ({ exchange, exchanges }) => {
    await exchange({ actorToken: "actor-token-1" });
    expect(Object.fromEntries(exchanges()[0] ?? [])).toMatchObject({
      subject_token_type: ACCESS,
      actor_token_type: ACCESS,
    });
    await expect(exchange({ actorTokenType: ACCESS })).rejects.toThrow(
      new TypeError("actorTokenType requires actorToken"),
    );
  });

  it("gives a token that does not print", async ({ scene, exchange }) => {
    const token = await exchange();
    expect(token).toMatchObject({ issuedTokenType: ACCESS, tokenType: "Bearer", scope: "a", value: "exchanged-1" });
    expect(token.expiresAt?.getTime()).toBe(scene.clock.epoch() + 600_000);
    expect(() => new Headers({ authorization: `Bearer ${String(token)}` })).toThrow(TypeError);
    for (const shown of [String(token), JSON.stringify(token), inspect(token)])
      expect(shown).not.toContain("exchanged");
  });

  it("takes a token that is not for access as the requested type", async ({ answer, exchange }) => {
    answer.json = { access_token: "PHNhbWw-", issued_token_type: `${TYPE}saml2`, token_type: "N_A" };
    const token = await exchange({ requestedTokenType: `${TYPE}saml2` });
    expect(token).toMatchObject({ tokenType: "N_A", issuedTokenType: `${TYPE}saml2`, expiresAt: undefined });
  });

  it.for<[string, Record<string, unknown>, Partial<ExchangeRequest>, string]>([
    ["an issued_token_type that is no string", { issued_token_type: [ACCESS] }, {}, "issued_token_type"],
    ["a refresh token that was not requested", { issued_token_type: `${TYPE}refresh_token` }, {}, "issued_token_type"],
    ["a token type that is unknown", { token_type: "mac" }, {}, "token_type"],
    ["no token", { access_token: undefined }, {}, "access_token"],
  ])("refuses %s", async ([_what, members, request, field], { answer, exchange }) => {
    Object.assign(answer.json, members);
    expect(await pendingError(exchange(request))).toMatchObject({
      class: "refused",
      message: expect.stringContaining(field),
    });
  });

  it("refuses a token for another audience", async ({ answer, exchange }) => {
    answer.json["access_token"] = await unsignedJwt({ aud: ["https://other.example"] });
    expect(await pendingError(exchange())).toMatchObject({
      code: "bad_token_answer",
      message: expect.stringContaining("https://other.example"),
    });
    answer.json["access_token"] = await unsignedJwt({ aud: "https://api.example/" });
    await expect(exchange()).resolves.toBeDefined();
  });

  it.for<[string, unknown]>([
    ["an object", {}],
    ["a list of objects", [{}]],
    ["a list in a list", [["https://api.example"]]],
    ["a number", 5],
    ["null", null],
    ["an empty list", []],
  ])("refuses a token whose aud is %s: it names no requested audience", async ([_what, aud], { answer, exchange }) => {
    answer.json["access_token"] = await unsignedJwt({ aud });
    expect(await pendingError(exchange({ audience: ["https://api.example", "5", "null"] }))).toMatchObject({
      code: "bad_token_answer",
      message: expect.stringContaining(`aud of the token ${quote(aud)}`),
    });
    answer.json["access_token"] = await unsignedJwt({ aud: [aud, "https://api.example"].flat() });
    await expect(exchange()).resolves.toBeDefined();
  });

  it("gives the issuer's verdict, without the tokens and the secret that it repeats", async ({ scene, exchange }) => {
    const error_description = `no ${SUBJECT}, no actor-token-1, no ${SECRET}`;
    scene.issuer.routes[TOKEN] = { status: 400, json: { error: "invalid_target", error_description } };
    const error = await exchange({ actorToken: "actor-token-1" }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "invalid_target", class: "remote" });
    for (const secret of [SUBJECT, "actor-token-1", SECRET]) expect(inspect(error)).not.toContain(secret);
  });

  it("goes to no endpoint in the clear", () => {
    const to = (address: string) => () => checkEndpoint(address, "the token endpoint");
    const HTTPS = "must be https, or http to this machine";
    for (const [address, rule] of [
      ["http://as.example/token", HTTPS],
      ["https://user@as.example/token", HTTPS],
      ["https://:secret@as.example/token", HTTPS],
      ["https://as.example/token#a", HTTPS],
      ["ftp://127.0.0.1/token", HTTPS],
      ["not an address", HTTPS],
      ["https://169.254.169.254/token", "must not be link-local, of a metadata service or reserved"],
    ] as const) {
      const message = `the token endpoint, ${quote(address)}, ${rule}`;
      expect(to(address)).toThrow(expect.objectContaining({ code: "usage", class: "usage", message }));
    }
    for (const address of ["https://as.example/token", "http://127.0.0.1/token"]) expect(to(address)).not.toThrow();
  });
});

describe("an agent's exchange", () => {
  const AUDIENCE = { audience: "https://api.example" };

  it("is of the server's own token, at its issuer, with its client", async ({ scene, exchanges }) => {
    const { mcp, issuer, agent } = scene;
    const token = await agent().exchange(mcp.url, AUDIENCE);
    expect(token.value).toBe("exchanged-1");
    expect(exchanges()[0]?.get("subject_token")).toBe("access-as-1");
    expect(issuer.to(TOKEN)[1]?.headers.authorization).toMatch(/^Basic /);
  });

  it.each([
    ["the server's own token", {}],
    ["a token from elsewhere", { subjectToken: SUBJECT }],
  ])("of %s is not sent to an issuer whose grant types lack it", async (_what, own) => {
    const { agent, mcp, issuer } = await startScene();
    const options = { client: { ...client, issuer: issuer.issuer } };
    if (!("subjectToken" in own)) await agent(options).login(mcp.url);
    const before = issuer.to(TOKEN).length;
    const failure = await agent(options)
      .exchange(mcp.url, { ...AUDIENCE, ...own })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "unsupported_grant_type",
      class: "remote",
      message: `the metadata of "${issuer.issuer}" list grant types (grant_types_supported) without token exchange (RFC 8693): nothing was sent`,
      hint: "log in again if the issuer has begun to exchange tokens",
      remedy: { action: "inspect", subject: "grants" },
    });
    expect(issuer.to(TOKEN)).toHaveLength(before);
  });

  it.for(["invalid_target", "invalid_scope", "unauthorized_client", "unsupported_grant_type", "invalid_request"])(
    "that the issuer answers with %s gets advice, where there is any",
    async (error, { scene }) => {
      delete scene.issuer.metadata["grant_types_supported"];
      await scene.agent().login(scene.mcp.url);
      scene.issuer.routes[TOKEN] = { status: 400, json: { error } };
      expect(await pendingError(scene.agent().exchange(scene.mcp.url, AUDIENCE))).toMatchObject({ code: error });
    },
  );

  it("is sent to an issuer that lists no grant types", async ({ scene, exchanges }) => {
    delete scene.issuer.metadata["grant_types_supported"];
    expect((await scene.agent().exchange(scene.mcp.url, AUDIENCE)).value).toBe("exchanged-1");
    expect(exchanges()).toHaveLength(1);
  });

  it("is remembered by all that it depends on, until a minute before its end", async ({ scene, exchanges }) => {
    const { mcp, clock } = scene;
    const agent = scene.agent();
    await agent.exchange(mcp.url, AUDIENCE);
    await agent.exchange(mcp.url, AUDIENCE);
    expect(exchanges()).toHaveLength(1);
    const other = [{ audience: "b" }, { resource: "https://api.example" }, { ...AUDIENCE, scope: "a" }];
    for (const wish of other) await agent.exchange(mcp.url, wish);
    await agent.exchange(mcp.url, { ...AUDIENCE, actorToken: "actor-token-1" });
    expect(exchanges()).toHaveLength(5);
    for (const subjectToken of ["subject-a", "subject-b"]) await agent.exchange(mcp.url, { ...AUDIENCE, subjectToken });
    const subjects = exchanges().map((form) => form.get("subject_token"));
    expect(subjects.slice(-2)).toEqual(["subject-a", "subject-b"]);
    await clock.sleep(541_000, new AbortController().signal);
    await agent.exchange(mcp.url, AUDIENCE);
    expect(exchanges()).toHaveLength(8);
  });

  it("is not remembered where its end is not known", async ({ scene, answer, exchanges }) => {
    answer.json["expires_in"] = undefined;
    const agent = scene.agent();
    await agent.exchange(scene.mcp.url, AUDIENCE);
    await agent.exchange(scene.mcp.url, AUDIENCE);
    expect(exchanges()).toHaveLength(2);
  });

  it("is made once for all who want it at the same time", async ({ scene, exchanges }) => {
    const agent = scene.agent();
    await agent.token(scene.mcp.url);
    await Promise.all(Array.from({ length: 10 }, () => agent.exchange(scene.mcp.url, AUDIENCE)));
    expect(exchanges()).toHaveLength(1);
  });

  it("of another token needs no login, only a client that the issuer knows", async ({ scene }) => {
    const { mcp, login, log } = scene;
    const wish = { ...AUDIENCE, subjectToken: SUBJECT };
    expect(await pendingError(scene.agent({ login: undefined }).exchange(mcp.url, wish))).toMatchObject({
      code: "login_required",
      remedy: loginAt(mcp.url, { option: "clientId" }),
    });
    const token = await scene.agent({ client, login }).exchange(mcp.url, wish);
    expect(token.value).toBe("exchanged-1");
    expect(log.filter((line) => line.includes("authorize"))).toEqual([]);
    expect(await scene.store.list()).toEqual([]);
  });

  it("goes from a machine's own token as well", async ({ scene, exchanges }) => {
    const grant = { type: "client_credentials" } as const;
    await scene.agent({ client, grant, login: undefined }).exchange(scene.mcp.url, AUDIENCE);
    expect(exchanges()[0]?.get("subject_token")).toBe("access-as-1");
    expect(scene.issuer.to(TOKEN)[1]?.headers.authorization).toBe(`Basic ${btoa(`service:${SECRET}`)}`);
  });

  it("does not log in where that is not wanted", async ({ scene }) => {
    expect(await pendingError(scene.agent().exchange(scene.mcp.url, { ...AUDIENCE, login: false }))).toMatchObject({
      code: "login_required",
    });
  });
});

describe("another program", () => {
  it("asks a token endpoint that it knows, and gets tokens that do not print", async ({ scene, call }) => {
    const tokens = await clientCredentialsTokens(call, { resource: "https://api.example", scope: "a" });
    expect(tokens.accessToken.reveal()).toBe("access-as-1");
    expect(inspect(tokens)).not.toContain("access-as-1");
    const assertion = await unsignedJwt({ iss: "platform", sub: "ci", exp: 4e9, aud: scene.issuer.issuer });
    await jwtBearerTokens(call, { assertion: new Secret(assertion) });
    expect(scene.issuer.form(TOKEN, 1).get("assertion")).toBe(assertion);
  });
});
