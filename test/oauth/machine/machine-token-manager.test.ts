import { jwtVerify } from "jose";
import { describe, expect } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { Workload } from "../../../src/oauth/model/machine-grant.js";
import { fileStore } from "../../../src/store/file/file.js";
import { pendingError } from "../../helpers/captured.js";
import { clientKey, unsignedJwt } from "../../helpers/client-keys.js";
import { remedy } from "../../helpers/remedy.js";
import { until } from "../../helpers/server.js";
import { folder } from "../../store/stores.js";
import { sceneTest } from "../support.js";

const SECRET = "machine-secret-1";
const BY_SECRET = {
  client: { clientId: "machine", clientSecret: SECRET },
  grant: { type: "client_credentials" },
} as const;
const TOKEN = "/pool/token";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

const it = sceneTest
  /** A client with a secret and no login. */
  .extend(
    "machine",
    ({ scene }) =>
      (options: Partial<AgentClientOptions> = {}) =>
        scene.agent({ ...BY_SECRET, login: undefined, ...options }),
  )
  /** How many tokens were requested of the issuer. */
  .extend(
    "tokenRequests",
    ({ scene }) =>
      () =>
        scene.issuer.to(TOKEN).length,
  )
  /** The stored grant. */
  .extend(
    "stored",
    ({ scene }) =>
      async () =>
        (await scene.store.list())[0],
  )
  /** An assertion of a workload, for the issuer. */
  .extend(
    "workloadJwt",
    ({ scene }) =>
      (claims: Record<string, unknown> = {}) =>
        unsignedJwt({ iss: "https://platform.example", sub: "ci", exp: 4e9, aud: scene.issuer.issuer, ...claims }),
  )
  /** A workload that proves itself by an assertion. */
  .extend(
    "workload",
    ({ machine }) =>
      (assertion: Workload["assertion"], name = "ci", options: Partial<AgentClientOptions> = {}) => {
        const grant = { type: "jwt_bearer", assertion, workload: name } as const;
        return machine({ client: { clientId: "workload" }, grant, ...options });
      },
  )
  /** What the identity provider issues. */
  .extend("idJag", ({ scene }) => {
    const header: Record<string, unknown> = { typ: "oauth-id-jag+jwt" };
    const claims: Record<string, unknown> = { iss: undefined, sub: "alice", client_id: "machine", exp: 4e9 };
    Object.assign(claims, { aud: scene.issuer.issuer, resource: scene.mcp.url });
    const answer: Record<string, unknown> = { issued_token_type: ID_JAG, token_type: "N_A" };
    return { header, claims, answer };
  })
  /** A client whose identity provider issues that. */
  .extend("employee", async ({ scene, machine, idJag }) => {
    const idp = await scene.another("idp", "");
    idJag.claims["iss"] = idp.origin;
    idp.routes["/token"] = async () => ({
      json: { access_token: await unsignedJwt(idJag.claims, idJag.header), expires_in: 300, ...idJag.answer },
    });
    const provider = { tokenEndpoint: `${idp.origin}/token`, clientId: "at-idp", clientSecret: "idp-secret-1" };
    const idToken = await unsignedJwt({ iss: idp.origin, sub: "alice" });
    const grant = { type: "id_jag", idToken: () => idToken, idp: provider } as const;
    return { idp, idToken, agent: machine({ grant }) };
  });

describe("client credentials", () => {
  it("get a token for the server by the client's secret, without a user", async ({ scene, machine }) => {
    const { issuer, mcp, login, log } = scene;
    const token = await machine({ login }).token(mcp.url, { scope: "a b" });
    expect(token.value).toBe("access-as-1");
    expect(Object.fromEntries(issuer.form(TOKEN))).toEqual({
      grant_type: "client_credentials",
      resource: mcp.url,
      scope: "a b",
    });
    expect(issuer.to(TOKEN)[0]?.headers.authorization).toBe(`Basic ${btoa(`machine:${SECRET}`)}`);
    expect(log.filter((line) => /person|authorize|register/.test(line))).toEqual([]);
  });

  it("use the token again while it lives, also without a prompt", async ({ scene, machine, tokenRequests }) => {
    await machine().token(scene.mcp.url);
    await machine().token(scene.mcp.url, { login: false });
    expect(tokenRequests()).toBe(1);
  });

  it("keep neither the secret nor a refresh token", async ({ scene, machine, stored }) => {
    await machine().token(scene.mcp.url);
    const grant = await stored();
    expect(grant).toMatchObject({ account: "grant:client_credentials:machine" });
    expect(grant?.client).toMatchObject({ clientSecret: undefined, authMethod: "client_secret_basic" });
    expect(grant?.tokens).toMatchObject({ refreshToken: undefined, idToken: undefined });
  });

  it("ask again when the token has expired, at the issuer that is known, without discovery", async ({
    scene,
    machine,
  }) => {
    await machine().token(scene.mcp.url, { scope: "a" });
    await scene.clock.sleep(3_600_000, new AbortController().signal);
    scene.log.length = 0;
    expect((await machine().token(scene.mcp.url, { login: false })).value).toBe("access-as-2");
    expect(scene.log).toEqual([`as POST ${TOKEN}`]);
    expect(scene.issuer.form(TOKEN, 1).get("scope")).toBe("a");
  });

  it("ask again where that is forced, and for scopes that the token lacks, without losing those it has", async ({
    scene,
    machine,
  }) => {
    await machine().token(scene.mcp.url, { scope: "a" });
    await machine().token(scene.mcp.url, { forceRefresh: true });
    await machine().token(scene.mcp.url, { scope: "b" });
    expect([1, 2].map((nth) => scene.issuer.form(TOKEN, nth).get("scope"))).toEqual(["a", "a b"]);
  });

  it("do not ask again for scopes that the issuer has left out before", async ({ scene, machine, tokenRequests }) => {
    scene.issuer.tokenAnswer = { scope: "a" };
    await machine().token(scene.mcp.url, { scope: "a b" });
    await machine().token(scene.mcp.url, { scope: "b" });
    expect(tokenRequests()).toBe(1);
  });

  it("do not ask again for scopes that the issuer has added", async ({ scene, machine, tokenRequests }) => {
    scene.issuer.tokenAnswer = { scope: "a b" };
    await machine().token(scene.mcp.url, { scope: "a" });
    await machine().token(scene.mcp.url, { scope: "b" });
    expect(tokenRequests()).toBe(1);
  });

  it("give a token that still lives where the issuer does not answer", async ({ scene, machine }) => {
    await machine().token(scene.mcp.url);
    scene.issuer.routes[TOKEN] = { status: 503, text: "" };
    const token = await machine().token(scene.mcp.url, { minTtl: 86_400, login: false });
    expect(token.value).toBe("access-as-1");
    expect(await pendingError(machine().token(scene.mcp.url, { forceRefresh: true }))).toMatchObject({
      class: "unavailable",
    });
  });

  it("follow a server that has moved its token endpoint", async ({ scene, machine }) => {
    const { issuer, mcp } = scene;
    await machine().token(mcp.url);
    issuer.metadata["token_endpoint"] = `${issuer.issuer}/token2`;
    issuer.routes["/pool/token2"] = { json: issuer.tokens(7) };
    issuer.routes[TOKEN] = { status: 404, text: "gone" };
    expect((await machine().token(mcp.url, { forceRefresh: true })).value).toBe("access-as-7");
  });

  it("keep tokens for another resource apart", async ({ scene, machine }) => {
    await machine().token(scene.mcp.url);
    const resource = `${scene.mcp.origin}/other`;
    expect((await machine({ resource }).token(scene.mcp.url)).resource).toBe(resource);
    expect(scene.issuer.form(TOKEN, 1).get("resource")).toBe(resource);
  });

  it("ask once for all who want a token at the same time", async ({ scene, machine, tokenRequests }) => {
    const agents = Array.from({ length: 10 }, () => machine());
    const tokens = await Promise.all(
      agents.flatMap((agent) => [agent, agent]).map((agent) => agent.token(scene.mcp.url)),
    );
    expect(new Set(tokens.map(({ value }) => value)).size).toBe(1);
    expect(tokenRequests()).toBe(1);
  });

  it("are used though the token cannot be saved, which is reported", async ({ scene, machine }) => {
    const said: string[] = [];
    const failure = new AgentAuthError("store_failed", "disk full", { class: "store" });
    const save = () => Promise.reject(failure);
    const onProgress = ({ subject, text }: { subject: string; text: string }) => void said.push(`${subject}: ${text}`);
    const store = { ...scene.store, save };
    expect((await machine({ store }).token(scene.mcp.url)).value).toBe("access-as-1");
    expect((await machine({ store, onProgress }).token(scene.mcp.url)).value).toBe("access-as-2");
    expect(said).toContain(
      `login: the token for ${scene.mcp.url} cannot be saved in ${scene.store.location}: disk full`,
    );
  });

  it("wait for another process that asks, and say so", async ({ scene, machine, tokenRequests }) => {
    const said: string[] = [];
    const home = folder();
    const onProgress = ({ subject, text }: { subject: string; text: string }) => void said.push(`${subject}: ${text}`);
    const work = async () => {
      const token = machine({ store: fileStore(home), onProgress }).token(scene.mcp.url);
      await until(() => said.length > 0);
      expect(tokenRequests()).toBe(0);
      return { token };
    };
    const name = `grant default ${scene.mcp.url} grant:client_credentials:machine`;
    const { token } = await fileStore(home).lease(name, work, { durationMs: 15_000, extend: true });
    expect((await token).value).toBe("access-as-1");
    expect(said[0]).toBe(`refresh: process ${process.pid} is requesting a token for ${scene.mcp.url}; waiting for it`);
  });

  it("take a verdict on a later request as it is, and look for no other issuer", async ({ scene, machine }) => {
    await machine().token(scene.mcp.url);
    scene.issuer.routes[TOKEN] = { status: 401, json: { error: "invalid_client" } };
    scene.log.length = 0;
    expect(await pendingError(machine().token(scene.mcp.url, { forceRefresh: true }))).toMatchObject({
      code: "invalid_client",
    });
    // With both methods for the secret.
    expect(scene.log).toEqual([`as POST ${TOKEN}`, `as POST ${TOKEN}`]);
  });

  it("are nothing that a client without a proof could ask by", async ({ scene, machine }) => {
    expect(await pendingError(machine({ client: { clientId: "machine" } }).token(scene.mcp.url))).toMatchObject({
      code: "usage",
      remedy: remedy({ action: "configure", option: "clientSecret", also: "privateKey" }),
    });
    expect(scene.log).toEqual([]);
  });

  it("use the addresses for clients with a certificate where requests show one", async ({ scene, machine }) => {
    const { issuer, mcp } = scene;
    issuer.metadata["mtls_endpoint_aliases"] = { token_endpoint: `${issuer.issuer}/mtls/token` };
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["tls_client_auth"];
    issuer.routes["/pool/mtls/token"] = () => ({ json: issuer.tokens(9) });
    const client = { clientId: "machine" };
    expect((await machine({ client, mutualTls: true }).token(mcp.url)).value).toBe("access-as-9");
    expect(issuer.form("/pool/mtls/token").get("client_id")).toBe("machine");
    issuer.metadata["mtls_endpoint_aliases"] = { token_endpoint: "http://as.example/token" };
    await expect(machine({ client, mutualTls: true }).token(mcp.url, { forceRefresh: true })).resolves.toBeDefined();
    const other = { clientId: "other" };
    expect(await pendingError(machine({ client: other, mutualTls: true }).token(mcp.url))).toMatchObject({
      code: "bad_address",
    });
    issuer.metadata["mtls_endpoint_aliases"] = `${issuer.issuer}/mtls`;
    expect(await pendingError(machine({ client: other, mutualTls: true }).token(mcp.url))).toMatchObject({
      class: "refused",
      message: expect.stringMatching(/^mtls_endpoint_aliases .* must be an object/),
    });
  });
});

describe("a client's private key", () => {
  it("signs a new assertion for every request: for the issuer, for a minute, with the key's id", async ({
    scene,
    machine,
  }) => {
    const { key, publicKey } = await clientKey("ES256", "key-7");
    const client = { clientId: "machine", privateKey: key };
    scene.issuer.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"];
    scene.issuer.metadata["token_endpoint_auth_signing_alg_values_supported"] = ["ES256"];
    await machine({ client }).token(scene.mcp.url);
    await machine({ client }).token(scene.mcp.url, { forceRefresh: true });
    const assertions = [0, 1].map((nth) => scene.issuer.form(TOKEN, nth).get("client_assertion") ?? "");
    const rules = { issuer: "machine", subject: "machine", audience: scene.issuer.issuer };
    const [one, two] = await Promise.all(assertions.map((text) => jwtVerify(text, publicKey, rules)));
    expect(one?.protectedHeader).toMatchObject({ alg: "ES256", kid: "key-7" });
    expect(one?.payload.aud).toBe(scene.issuer.issuer);
    expect((one?.payload.exp ?? 0) - Date.now() / 1000).toBeLessThanOrEqual(60);
    expect(one?.payload.jti).not.toBe(two?.payload.jti);
    expect(scene.issuer.form(TOKEN).get("client_assertion_type")).toBe(
      "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    );
    expect(scene.issuer.to(TOKEN)[0]?.headers.authorization).toBeUndefined();
  });

  it.for(["RS256", "PS256", "ES384", "EdDSA", "Ed25519"] as const)(
    "can be one for %s",
    async (algorithm, { scene, machine }) => {
      const { key, publicKey } = await clientKey(algorithm);
      scene.issuer.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"];
      await machine({ client: { clientId: "machine", privateKey: key } }).token(scene.mcp.url);
      const assertion = scene.issuer.form(TOKEN).get("client_assertion") ?? "";
      const { protectedHeader } = await jwtVerify(assertion, publicKey, { algorithms: [algorithm] });
      expect(protectedHeader.alg).toBe(algorithm);
    },
  );

  it("proves the client of a user's login too, in the login and in the refresh, and is never stored", async ({
    scene,
    stored,
  }) => {
    const { key } = await clientKey("ES256");
    scene.issuer.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"];
    const client = { clientId: "for-people", privateKey: key };
    await scene.agent({ client }).login(scene.mcp.url);
    await scene.agent({ client }).token(scene.mcp.url, { forceRefresh: true });
    expect([0, 1].map((nth) => scene.issuer.form(TOKEN, nth).has("client_assertion"))).toEqual([true, true]);
    expect(await pendingError(scene.agent().token(scene.mcp.url, { forceRefresh: true }))).toMatchObject({
      code: "usage",
      message: expect.stringContaining("private key"),
      remedy: remedy({ action: "configure", option: "privateKey" }),
    });
    expect(Object.keys((await stored())?.client ?? {})).not.toContain("privateKey");
  });
});

describe("an assertion", () => {
  it("is read once for each token request, and sent as it is", async ({ scene, workloadJwt, workload }) => {
    const assertions = [await workloadJwt({ jti: "1" }), await workloadJwt({ jti: "2" })];
    let reads = 0;
    const agent = workload(() => `${assertions[reads++] ?? ""}\n`);
    await agent.token(scene.mcp.url);
    await agent.token(scene.mcp.url);
    expect(reads).toBe(1);
    await agent.token(scene.mcp.url, { forceRefresh: true });
    expect([0, 1].map((nth) => scene.issuer.form(TOKEN, nth).get("assertion"))).toEqual(assertions);
    expect(reads).toBe(2);
    expect(Object.fromEntries(scene.issuer.form(TOKEN))).toMatchObject({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      client_id: "workload",
      resource: scene.mcp.url,
    });
  });

  it("of the same workload shares its token, of another one gets its own", async ({
    scene,
    tokenRequests,
    workloadJwt,
    workload,
  }) => {
    await workload(() => workloadJwt({ jti: "1" })).token(scene.mcp.url);
    await workload(() => workloadJwt({ jti: "2" })).token(scene.mcp.url);
    expect(tokenRequests()).toBe(1);
    await workload(() => workloadJwt(), "cd").token(scene.mcp.url);
    expect(tokenRequests()).toBe(2);
    const accounts = (await scene.store.list()).map(({ account }) => account);
    expect(new Set(accounts).size).toBe(2);
    for (const account of accounts) expect(account).toMatch(/^grant:jwt_bearer:workload:[0-9a-f]{16}$/);
  });

  it("is requested for the issuer, its endpoint and the server, or for the audience of the options", async ({
    scene,
    workloadJwt,
    workload,
  }) => {
    const requests: unknown[] = [];
    const get: Workload["assertion"] = async ({ signal, ...request }) => {
      requests.push({ ...request, aborted: signal?.aborted });
      return workloadJwt({ aud: request.audience });
    };
    const { issuer, mcp } = scene;
    await workload(get).token(mcp.url);
    const grant = { type: "jwt_bearer", assertion: get, workload: "ci", audience: "sts.example" } as const;
    await workload(get, "ci", { grant }).token(mcp.url, { forceRefresh: true });
    const common = {
      issuer: issuer.issuer,
      tokenEndpoint: `${issuer.issuer}/token`,
      resource: mcp.url,
      aborted: false,
    };
    expect(requests).toEqual([
      { ...common, audience: issuer.issuer },
      { ...common, audience: "sts.example" },
    ]);
  });

  it("needs no client: the request names none, and the workload is bound to its issuer", async ({
    scene,
    tokenRequests,
    workloadJwt,
    workload,
  }) => {
    const { issuer, mcp, store } = scene;
    // RFC 7523 leaves the authentication of a client to the issuer: its list is for clients.
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"];
    const get = () => workloadJwt();
    await workload(get, "ci", { client: undefined, issuer: issuer.issuer }).token(mcp.url);
    expect([...issuer.form(TOKEN).keys()].sort()).toEqual(["assertion", "grant_type", "resource"]);
    expect(issuer.to(TOKEN)[0]?.headers.authorization).toBeUndefined();
    const [grant] = await store.list();
    expect(grant?.account).toMatch(/^grant:jwt_bearer:[0-9a-f]{16}$/);
    await workload(get, "ci", { client: undefined }).token(mcp.url, { forceRefresh: true });
    expect(tokenRequests()).toBe(2);
    const other = workload(get, "cd", { client: undefined, trustNamedIssuer: false }).token(mcp.url);
    expect(await pendingError(other)).toMatchObject({
      code: "issuer_unbound",
      message: expect.stringContaining("workload"),
    });
    expect(tokenRequests()).toBe(2);
  });

  it("is not sent to a second issuer: where the server moves, another one is requested and refused", async ({
    scene,
    workloadJwt,
    workload,
  }) => {
    const { issuer, mcp } = scene;
    const audiences: string[] = [];
    const get: Workload["assertion"] = ({ audience }) => {
      audiences.push(audience);
      return workloadJwt();
    };
    const agent = (trust = {}) => workload(get, "ci", { client: undefined, ...trust });
    await agent({ issuer: issuer.issuer }).token(mcp.url);
    const second = await scene.another("second");
    mcp.metadata["authorization_servers"] = [second.issuer];
    issuer.routes[TOKEN] = { status: 404, text: "" };
    expect(await pendingError(agent().token(mcp.url, { forceRefresh: true }))).toMatchObject({
      code: "issuer_changed",
    });
    expect(audiences).toEqual([issuer.issuer, issuer.issuer]);
    expect(second.to(TOKEN)).toEqual([]);
  });

  it("lacks scopes for good: the step-up of a user is not for it", async ({
    scene,
    tokenRequests,
    workloadJwt,
    workload,
  }) => {
    const { mcp } = scene;
    mcp.routes["/mcp"] = {
      status: 403,
      headers: { "www-authenticate": 'Bearer error="insufficient_scope", scope="admin"' },
      text: "",
    };
    expect(await pendingError(workload(() => workloadJwt()).fetch(mcp.url))).toMatchObject({
      code: "insufficient_scope",
      class: "auth",
    });
    expect(tokenRequests()).toBe(1);
  });
});

describe("the word of an identity provider", () => {
  it("is requested by token exchange, and taken to the issuer by the JWT bearer grant", async ({
    scene,
    stored,
    idJag,
    employee,
  }) => {
    const { idp, idToken, agent } = employee;
    const token = await agent.token(scene.mcp.url, { scope: "a" });
    expect(token.value).toBe("access-as-1");
    expect(Object.fromEntries(idp.form("/token"))).toEqual({
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      requested_token_type: ID_JAG,
      subject_token: idToken,
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      audience: scene.issuer.issuer,
      resource: scene.mcp.url,
      scope: "a",
    });
    expect(idp.to("/token")[0]?.headers.authorization).toBe(`Basic ${btoa("at-idp:idp-secret-1")}`);
    const second = scene.issuer.form(TOKEN);
    expect(second.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
    expect(second.get("assertion")).toBe(await unsignedJwt(idJag.claims, idJag.header));
    expect(scene.issuer.to(TOKEN)[0]?.headers.authorization).toBe(`Basic ${btoa(`machine:${SECRET}`)}`);
    expect((await stored())?.account).toMatch(/^grant:id_jag:machine:[0-9a-f]{16}$/);
  });

  it.for<[string | undefined, string | undefined, string | null, string | null]>([
    // What is requested, what the policy allows, and what is requested of the provider and the issuer.
    ["a b", undefined, "a b", "a b"],
    ["a b", "b c", "a b", "b"],
    ["a b", "c", "a b", null],
    [undefined, "c", null, null],
    [undefined, undefined, null, null],
  ])(
    "asks for the scopes %j, of which %j are allowed",
    async ([scope, allowed, ofIdp, ofIssuer], { scene, idJag, employee }) => {
      if (allowed !== undefined) idJag.answer["scope"] = allowed;
      await employee.agent.token(scene.mcp.url, { scope });
      expect(employee.idp.form("/token").get("scope")).toBe(ofIdp);
      expect(scene.issuer.form(TOKEN).get("scope")).toBe(ofIssuer);
    },
  );

  it.for<[string, string | undefined, object]>([
    ["access_denied", undefined, {}],
    ["invalid_target", "", {}],
    ["invalid_scope", "a b", {}],
    ["unauthorized_client", undefined, { resource: "none" }],
    ["invalid_grant", undefined, {}],
    ["server_error", undefined, {}],
  ])(
    "says whom to ask where the provider answers %s, with the scope %j and %j",
    async ([error, scope, over], { scene, machine, employee }) => {
      const { idp, idToken } = employee;
      idp.routes["/token"] = { status: 400, json: { error } };
      const provider = { tokenEndpoint: `${idp.origin}/token`, clientId: "at-idp", clientSecret: "idp-secret-1" };
      for (const issuer of [undefined, `${idp.origin}/tenant`]) {
        const grant = { type: "id_jag", idToken: () => idToken, idp: { ...provider, issuer } } as const;
        const isOfPolicy = error !== "invalid_grant" && error !== "server_error";
        expect(await pendingError(machine({ grant, ...over }).token(scene.mcp.url, { scope }))).toMatchObject({
          code: isOfPolicy ? "assertion_denied" : error,
        });
      }
      expect(scene.issuer.to(TOKEN)).toEqual([]);
    },
  );

  it("is not requested in the clear", async ({ scene, machine }) => {
    const idp = { tokenEndpoint: "http://idp.example/token", clientId: "at-idp" };
    const grant = { type: "id_jag", idToken: () => unsignedJwt({ sub: "alice" }), idp } as const;
    expect(await pendingError(machine({ grant }).token(scene.mcp.url))).toMatchObject({ code: "usage" });
  });
});

describe("a server that does not take a machine's token", () => {
  it("is called once more with a new one", async ({ scene, machine }) => {
    scene.mcp.accepts = (token) => token === "access-as-2";
    const response = await machine().fetch(scene.mcp.url);
    expect(response.status).toBe(200);
    expect(scene.mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-2"]);
  });

  it("has the last word after that, and is not stormed with tokens", async ({ scene, machine, tokenRequests }) => {
    scene.mcp.accepts = () => false;
    const agent = machine();
    for (let round = 0; round < 3; round++) expect((await agent.fetch(scene.mcp.url)).status).toBe(401);
    expect(await pendingError(agent.fetch(scene.mcp.url))).toMatchObject({ code: "renewal_storm" });
    expect(tokenRequests()).toBe(4);
  });

  it("gets a token with the scopes that it misses as well, requested once", async ({ scene, machine }) => {
    const { mcp, issuer } = scene;
    mcp.routes["/mcp"] = ({ headers }) => {
      if (headers.authorization === undefined) return mcp.refusal();
      const challenge = 'Bearer error="insufficient_scope", scope="admin"';
      return headers.authorization === "Bearer access-as-2"
        ? { json: { ok: true } }
        : { status: 403, headers: { "www-authenticate": challenge }, text: "" };
    };
    await machine().token(mcp.url, { scope: "tools" });
    expect((await machine().fetch(mcp.url)).status).toBe(200);
    expect(issuer.form(TOKEN, 1).get("scope")).toBe("tools admin");
  });

  it("says no for good where the scopes do not help", async ({ scene, machine, tokenRequests }) => {
    const { mcp } = scene;
    const challenge = 'Bearer error="insufficient_scope", scope="admin"';
    mcp.routes["/mcp"] = ({ headers }) =>
      headers.authorization === undefined
        ? mcp.refusal()
        : { status: 403, headers: { "www-authenticate": challenge }, text: "" };
    expect((await machine().fetch(mcp.url)).status).toBe(403);
    expect(tokenRequests()).toBe(2);
  });
});

describe("machines and people", () => {
  it("have tokens of their own at the same server", async ({ scene, machine }) => {
    const { mcp, login, log } = scene;
    await machine().token(mcp.url);
    expect(await pendingError(scene.agent({ login: undefined }).token(mcp.url))).toMatchObject({
      code: "login_required",
    });
    expect((await scene.agent({ login }).token(mcp.url)).value).toBe("access-as-2");
    expect((await machine().token(mcp.url)).value).toBe("access-as-1");
    expect((await scene.agent().token(mcp.url)).value).toBe("access-as-2");
    expect(log.filter((line) => line === `as POST ${TOKEN}`)).toHaveLength(2);
  });

  it("do not log in for each other", async ({ scene, machine }) => {
    const { mcp } = scene;
    const account = "grant:client_credentials:machine";
    const refusal = { code: "usage", remedy: remedy({ action: "token", grant: "client_credentials" }) };
    expect(await pendingError(scene.agent({ loginHint: account }).login(mcp.url))).toMatchObject(refusal);
    expect(await pendingError(scene.agent({ loginHint: account }).token(mcp.url))).toMatchObject(refusal);
    expect(await pendingError(machine({ login: scene.login }).login(mcp.url))).toMatchObject(refusal);
    expect(scene.log).toEqual([]);
  });

  it("do not log in for each other where the server refuses what is stored either", async ({ scene, machine }) => {
    await machine().token(scene.mcp.url);
    scene.mcp.accepts = () => false;
    const account = "grant:client_credentials:machine";
    const refusal = { code: "usage", remedy: remedy({ action: "token", grant: "client_credentials" }) };
    expect(await pendingError(scene.agent({ loginHint: account }).fetch(scene.mcp.url))).toMatchObject(refusal);
    expect(scene.log.join()).not.toMatch(/authorize/);
  });

  it("are listed apart by the status, and logged out one by one", async ({ scene, machine }) => {
    const { mcp } = scene;
    await machine().token(mcp.url);
    await scene.agent().login(mcp.url);
    const status = async () => (await scene.agent().status()).map(({ grant, refreshable }) => ({ grant, refreshable }));
    expect(await status()).toEqual(
      expect.arrayContaining([
        { grant: "login", refreshable: true },
        { grant: "client-credentials", refreshable: true },
      ]),
    );
    expect(await machine().disconnect(mcp.url)).toMatchObject({ removed: true, revoked: true });
    expect(await status()).toEqual([{ grant: "login", refreshable: true }]);
    await machine().token(mcp.url);
    const account = "grant:client_credentials:machine";
    expect(await scene.agent().disconnect(mcp.url, { account })).toMatchObject({ removed: true, revoked: false });
    expect(await status()).toEqual([{ grant: "login", refreshable: true }]);
  });

  it("ask about their own tokens, the machine with the secret that it was given", async ({ scene, machine }) => {
    const { mcp, issuer } = scene;
    expect(await pendingError(machine().introspect(mcp.url))).toMatchObject({ code: "login_required" });
    await machine().token(mcp.url);
    expect(await machine().introspect(mcp.url)).toMatchObject({ active: true });
    expect(issuer.to("/pool/introspect")[0]?.headers.authorization).toBe(`Basic ${btoa(`machine:${SECRET}`)}`);
    const unarmed = scene.agent({ loginHint: "grant:client_credentials:machine" });
    expect(await pendingError(unarmed.introspect(mcp.url))).toMatchObject({
      code: "usage",
      remedy: remedy({ action: "configure", option: "clientSecret" }),
    });
  });

  it("are not mixed up by options that contradict each other", ({ scene, machine }) => {
    expect(() => scene.agent({ grant: { type: "client_credentials" } })).toThrow(TypeError);
    expect(() => machine({ loginHint: "alice" })).toThrow(TypeError);
  });
});
