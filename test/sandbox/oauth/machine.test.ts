import { inspect } from "node:util";
import { decodeJwt } from "jose";
import { describe, expect, test, vi } from "vitest";
import { MovableClock } from "../../../src/sandbox/http/clock.js";
import { type SandboxMachine, startSandbox } from "../../../src/sandbox/index.js";
import { OAuthStore } from "../../../src/sandbox/oauth/oauth-store.js";
import { it as base } from "../support.js";
import { callTool } from "./support.js";

const TYPE = "urn:ietf:params:oauth:token-type:";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

const basic = (id: string, secret: string) => ({ authorization: `Basic ${btoa(`${id}:${secret}`)}` });
async function post(url: string, form: Record<string, string>, headers: Record<string, string> = {}) {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(form), headers });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

const it = base
  .extend("options", { machineGrants: true, devices: 3 })
  .extend("machine", ({ sandbox }) => {
    if (!sandbox.machine) throw new Error("there should be machines");
    return sandbox.machine;
  })
  .extend("issuer", ({ sandbox }) => sandbox.authUrl(sandbox.ids.pool))
  .extend("asService", ({ machine }) => basic(machine.secretClient.clientId, machine.secretClient.clientSecret))
  /** Asks the issuer for a token, as the service. */
  .extend(
    "token",
    ({ issuer, asService }) =>
      (form: Record<string, string>, headers = asService) =>
        post(`${issuer}/token`, form, headers),
  )
  /** Asks the issuer for a token, by the assertion of a workload. */
  .extend("bearer", ({ issuer, machine }) => (assertion: string, more: Record<string, string> = {}) => {
    const client_id = machine.workloadClient.clientId;
    return post(`${issuer}/token`, { grant_type: JWT_BEARER, client_id, assertion, ...more });
  })
  .extend(
    "whoAmI",
    ({ sandbox }) =>
      (accessToken = "") =>
        callTool(sandbox.mcpUrl, accessToken, "whoami"),
  )
  .extend(
    "introspect",
    ({ issuer, asService }) =>
      (accessToken = "") =>
        post(`${issuer}/introspect`, { token: accessToken }, asService),
  )
  /** Asks the identity provider for an ID-JAG. */
  .extend("vouch", ({ sandbox, machine, issuer }) => {
    const { tokenEndpoint, clientId, clientSecret } = machine.idp;
    return (over: Record<string, string> = {}, headers = basic(clientId, clientSecret)) => {
      const form = {
        grant_type: EXCHANGE,
        subject_token: machine.idp.idToken(),
        subject_token_type: `${TYPE}id_token`,
        requested_token_type: `${TYPE}id-jag`,
        audience: issuer,
        resource: sandbox.mcpUrl,
        scope: "a",
        ...over,
      };
      return post(tokenEndpoint, form, headers);
    };
  })
  /** Redeems an ID-JAG at the issuer. */
  .extend(
    "spend",
    ({ sandbox, token }) =>
      (assertion = "", more: Record<string, string> = {}) =>
        token({ grant_type: JWT_BEARER, assertion, resource: sandbox.mcpUrl, ...more }),
  );

describe.each([false, true])("a service's own token, opaque: %s", (opaque) => {
  it.override("options", { machineGrants: true, devices: 3, opaque });

  it("is given for its secret, taken by the MCP server, and known at the introspection", async ({
    sandbox,
    machine,
    token,
    whoAmI,
    introspect,
  }) => {
    const { body, status } = await token({ grant_type: "client_credentials", resource: sandbox.mcpUrl, scope: "a" });
    expect([status, body["token_type"], body["scope"]]).toEqual([200, "Bearer", "a"]);
    const answer = await whoAmI(body["access_token"]);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain(machine.secretClient.clientId);
    expect((await introspect(body["access_token"])).body).toMatchObject({ active: true, scope: "a" });
  });

  it("is exchanged for that service alone", async ({ machine, issuer, token }) => {
    const { body } = await token({ grant_type: "client_credentials", scope: "a" });
    const wish = {
      grant_type: EXCHANGE,
      subject_token: body["access_token"] ?? "",
      subject_token_type: `${TYPE}access_token`,
    };
    const exchanged = await token({ ...wish, audience: "https://api.example" });
    expect(exchanged.body).toMatchObject({ issued_token_type: `${TYPE}access_token`, scope: "a" });
    const other = await post(`${issuer}/token`, { ...wish, audience: "b", client_id: machine.workloadClient.clientId });
    expect(other.body["error"]).toBe("invalid_request");
  });
});

it("a service gets nothing for a wrong secret, and nothing for another resource", async ({ machine, token }) => {
  const wrong = basic(machine.secretClient.clientId, "wrong-secret");
  expect((await token({ grant_type: "client_credentials" }, wrong)).body["error"]).toBe("invalid_client");
  const elsewhere = await token({ grant_type: "client_credentials", resource: "https://other.example" });
  expect(elsewhere.body["error"]).toBe("invalid_target");
});

describe("a service whose exchanges are limited", () => {
  it.override("options", { machineGrants: true, devices: 3, exchangeAudiences: ["billing"] });

  it("can be held to exchange tokens for some alone", async ({ token }) => {
    const { body } = await token({ grant_type: "client_credentials" });
    const wish = {
      grant_type: EXCHANGE,
      subject_token: body["access_token"] ?? "",
      subject_token_type: `${TYPE}access_token`,
    };
    expect((await token({ ...wish, audience: "billing" })).status).toBe(200);
    expect((await token({ ...wish, audience: "other" })).body["error"]).toBe("invalid_target");
  });
});

describe("an assertion of a workload", () => {
  it("gives a token in the name of whom it speaks for", async ({ sandbox, machine, bearer, whoAmI, introspect }) => {
    const { body } = await bearer(machine.assertion({ subject: "ci" }), { scope: "a" });
    expect(decodeJwt(body["access_token"] ?? "")).toMatchObject({ sub: "ci", aud: sandbox.mcpUrl, scope: "a" });
    expect((await whoAmI(body["access_token"])).status).toBe(200);
    expect((await introspect(body["access_token"])).body).toMatchObject({ active: true, sub: "ci" });
  });

  it.for<[string, (machine: SandboxMachine, issuer: string) => string]>([
    ["for another server", (machine) => machine.assertion({ audience: "https://other.example" })],
    ["that has ended", (machine) => machine.assertion({ ttlSeconds: -1 })],
    ["that is an id token", (machine, issuer) => machine.idp.idToken({ audience: issuer })],
    ["with another signature", (machine) => machine.assertion().replace(/.{8}$/, "AAAAAAAA")],
    ["that is none", () => "nothing"],
  ])("is refused where it is one %s", async ([_what, assertion], { machine, issuer, bearer }) => {
    expect((await bearer(assertion(machine, issuer))).body["error"]).toBe("invalid_grant");
  });

  it("is for a resource of the server", async ({ machine, bearer }) => {
    const { body } = await bearer(machine.assertion(), { resource: "https://other.example" });
    expect(body["error"]).toBe("invalid_target");
  });
});

describe("the identity provider", () => {
  it("vouches for a user at an authorization server, once for each time it is asked", async ({
    whoAmI,
    vouch,
    spend,
  }) => {
    const { body } = await vouch();
    expect(body).toMatchObject({ issued_token_type: `${TYPE}id-jag`, token_type: "N_A" });
    const spent = await spend(body["access_token"]);
    expect(decodeJwt(spent.body["access_token"] ?? "")).toMatchObject({ sub: "alice", scope: "a" });
    expect((await whoAmI(spent.body["access_token"])).status).toBe(200);
    expect((await spend(body["access_token"])).body["error"]).toBe("invalid_grant");
  });

  it.for<[string, (machine: SandboxMachine) => Record<string, string>, string]>([
    [
      "of another client",
      (machine) => ({ subject_token: machine.idp.idToken({ audience: "other" }) }),
      "invalid_grant",
    ],
    ["that has ended", (machine) => ({ subject_token: machine.idp.idToken({ ttlSeconds: -1 }) }), "invalid_grant"],
    ["of a workload", (machine) => ({ subject_token: machine.assertion() }), "invalid_grant"],
    ["for a server that it does not know", () => ({ audience: "https://other.example" }), "invalid_target"],
    [
      "that is an unknown refresh token",
      () => ({ subject_token_type: `${TYPE}refresh_token`, subject_token: "nothing" }),
      "invalid_grant",
    ],
    ["that is said to be an access token", () => ({ subject_token_type: `${TYPE}access_token` }), "invalid_request"],
    ["for something else than an ID-JAG", () => ({ requested_token_type: `${TYPE}jwt` }), "invalid_request"],
  ])("does not vouch for an id token %s", async ([_what, over, error], { machine, vouch }) => {
    expect((await vouch(over(machine))).body["error"]).toBe(error);
  });

  it("publishes the metadata of OpenID Connect, and the servers announce that they take its assertions", async ({
    machine,
    issuer,
  }) => {
    const read = async (url: string) => (await fetch(url)).json() as Promise<Record<string, unknown>>;
    expect(await read(`${machine.idp.issuer}/.well-known/openid-configuration`)).toMatchObject({
      issuer: machine.idp.issuer,
      token_endpoint: machine.idp.tokenEndpoint,
      code_challenge_methods_supported: ["S256"],
      identity_chaining_requested_token_types_supported: [`${TYPE}id-jag`],
    });
    expect(await read(`${issuer}/.well-known/oauth-authorization-server`)).toMatchObject({
      authorization_grant_profiles_supported: ["urn:ietf:params:oauth:grant-profile:id-jag"],
    });
    expect((await fetch(`${machine.idp.issuer}/.well-known/oauth-authorization-server`)).status).toBe(404);
    expect((await fetch(`${issuer}/.well-known/openid-configuration`)).status).toBe(404);
  });

  it("keeps to the policy of the company", async ({ issuer, machine, vouch }) => {
    machine.idp.deny(issuer);
    expect((await vouch()).body["error"]).toBe("access_denied");
    machine.idp.deny(issuer, false);
    expect((await vouch()).status).toBe(200);
  });

  it("may leave out the resource, which the client then names", async ({ machine, issuer, spend }) => {
    const { tokenEndpoint, clientId, clientSecret } = machine.idp;
    const form = { grant_type: EXCHANGE, requested_token_type: `${TYPE}id-jag`, audience: issuer };
    const subject = { subject_token: machine.idp.idToken(), subject_token_type: `${TYPE}id_token` };
    const { body } = await post(tokenEndpoint, { ...form, ...subject }, basic(clientId, clientSecret));
    expect(decodeJwt(body["access_token"] ?? "")).not.toHaveProperty("resource");
    expect((await spend(body["access_token"])).status).toBe(200);
  });

  it("does not know a client with a wrong secret", async ({ machine, vouch }) => {
    expect((await vouch({}, basic(machine.idp.clientId, "wrong"))).status).toBe(401);
  });

  it("issues an ID-JAG for one client, one resource, and the scopes that were asked for", async ({
    sandbox,
    bearer,
    vouch,
    spend,
  }) => {
    const word = async () => (await vouch()).body["access_token"] ?? "";
    expect((await bearer(await word(), { resource: sandbox.mcpUrl })).body["error"]).toBe("invalid_grant");
    const other = `${sandbox.mcpUrl}/${sandbox.ids.pool}`;
    expect((await spend(await word(), { resource: other })).body["error"]).toBe("invalid_grant");
    expect((await spend(await word(), { scope: "a b" })).body["error"]).toBe("invalid_scope");
  });
});

describe("machines", () => {
  it("are not there without the option, and not advertised", async () => {
    const plain = await startSandbox({ devices: 0 });
    try {
      expect(plain.machine).toBeUndefined();
      const metadata = await fetch(`${plain.authUrl(plain.ids.pool)}/.well-known/oauth-authorization-server`);
      const said = (await metadata.json()) as Record<string, unknown>;
      expect(said).not.toHaveProperty("token_endpoint_auth_methods_supported");
      expect(said["grant_types_supported"]).not.toContain("client_credentials");
      expect((await fetch(`${plain.origin}/idp/token`, { method: "POST" })).status).toBe(404);
    } finally {
      await plain.close();
    }
  });

  it("do not print their secrets", ({ sandbox, machine }) => {
    const secrets = [machine.secretClient.clientSecret, machine.idp.clientSecret, "PRIVATE KEY"];
    for (const shown of [
      inspect(sandbox, { depth: 5 }),
      JSON.stringify(machine),
      inspect(machine, { showHidden: true }),
    ])
      for (const secret of secrets) expect(shown).not.toContain(secret);
  });
});

const START = 1_790_000_000_000;

function make(reuseGrace = 0) {
  const clock = new MovableClock(() => START);
  const store = new OAuthStore({ clock, reuseGrace, reused: () => new Error("reused") });
  return { clock, store };
}

describe("the store of an authorization server", () => {
  test("decides which of two requests uses a thing up, and revokes the grant at the second", async () => {
    const { store } = make();
    const [codes, tokens, grants] = ["AuthorizationCode", "RefreshToken", "Grant"].map((kind) => store.adapter(kind));
    await grants?.upsert("g", {});
    await tokens?.upsert("t", { grantId: "g" });
    await tokens?.upsert("other", { grantId: "g2" });
    await codes?.upsert("c", { grantId: "g" });
    const both = await Promise.allSettled([codes?.consume("c"), codes?.consume("c")]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(store.hasGrant("g")).toBe(false);
    expect(await tokens?.find("t")).toBeUndefined();
    expect(await tokens?.find("other")).toEqual({ grantId: "g2" });
    await expect(codes?.consume("never there")).rejects.toThrow("reused");
  });

  test("lets only refresh tokens come again while the grace lasts, counted from the first use", async () => {
    const { clock, store } = make(30);
    const [codes, tokens] = [store.adapter("AuthorizationCode"), store.adapter("RefreshToken")];
    for (const adapter of [codes, tokens]) {
      await adapter.upsert("x", {});
      await adapter.consume("x");
    }
    expect(await codes.find("x")).toEqual({ consumed: true });
    clock.advance(20_000);
    await tokens.consume("x");
    expect(await tokens.find("x")).toEqual({});
    clock.advance(10_000);
    expect(await tokens.find("x")).toEqual({ consumed: true });
  });

  test("makes things older by as much as the clock was put forward, also when they are stored again", async () => {
    const { clock, store } = make();
    const sessions = store.adapter("Session");
    await sessions.upsert("s", { uid: "u", exp: 5000, loginTs: 1000, accountId: "alice" });
    clock.advance(60_000);
    const once = { uid: "u", exp: 4940, loginTs: 940, accountId: "alice" };
    expect(await sessions.findByUid("u")).toEqual(once);
    await sessions.upsert("s", once);
    clock.advance(60_000);
    expect(await sessions.find("s")).toEqual({ ...once, exp: 4880, loginTs: 880 });
  });

  test("keeps them as they are where the clock stands still, whatever the machine's does", () => {
    vi.useFakeTimers({ now: 1_000_700 });
    try {
      const clock = new MovableClock(() => 5_000_400);
      const seconds = () => Math.floor(Date.now() / 1000) + clock.skew;
      for (const ms of [0, 299, 1, 499, 1, 60_000]) {
        vi.advanceTimersByTime(ms);
        expect(seconds()).toBe(5000);
      }
      expect(new MovableClock(Date.now).skew).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("forgets the oldest when it is full, and what it gave cannot be changed", async () => {
    const { store } = make();
    const clients = store.adapter("Client");
    for (let i = 0; i <= 10_000; i++) await clients.upsert(String(i), { name: "x" });
    expect([await clients.find("0"), await clients.find("1")]).toEqual([undefined, { name: "x" }]);
    const found = await clients.find("5");
    Object.assign(found ?? {}, { name: "y" });
    expect(await clients.find("5")).toEqual({ name: "x" });
  });
});
