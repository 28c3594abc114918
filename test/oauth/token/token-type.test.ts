import { describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../../src/errors.js";
import { decodeLogin, encodeLogin } from "../../../src/oauth/login/login-codec.js";
import { decodeGrant, encodeGrant } from "../../../src/oauth/model/codec.js";
import { madeGrant, plainGrant } from "../../helpers/grant.js";
import { type Scene, startScene } from "../../helpers/issuer.js";

const SIGNAL = new AbortController().signal;
const HOUR_MS = 3_600_000;
const MACHINE = {
  grant: { type: "client_credentials" },
  client: { clientId: "machine", clientSecret: "secret" },
  login: undefined,
} as const;

/** An issuer whose tokens have this type. */
async function issuing(type: unknown): Promise<Scene> {
  const scene = await startScene();
  scene.issuer.tokenAnswer = { token_type: type };
  delete scene.issuer.metadata["grant_types_supported"];
  return scene;
}

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error as AgentAuthError,
  );

describe("a token of the type user", () => {
  it.each([
    ["a login", {}],
    ["a device login", { flow: "device" }],
    ["a machine grant", MACHINE],
  ] as const)("is refused in %s by default, and the remedy names the type", async (_what, options) => {
    const { agent, mcp, store } = await issuing("USER");
    const client = agent(options);
    const error = await failureOf(options === MACHINE ? client.token(mcp.url) : client.login(mcp.url));
    expect(error).toMatchObject({
      code: "bad_token_answer",
      class: "refused",
      message: expect.stringContaining('token_type "user"'),
      hint: 'if you trust this server, policy.acceptTokenType: "user" disables this check for it',
      remedy: { action: "allow", option: "acceptTokenType", value: "user" },
    });
    expect(await store.list()).toEqual([]);
  });

  it.each([
    ["a login", {}],
    ["a device login", { flow: "device" }],
    ["a machine grant", MACHINE],
  ] as const)(
    "is used as a bearer token in %s that accepts it, and refreshed without the option",
    async (_what, more) => {
      const { agent, mcp, clock, store } = await issuing("user");
      const first = agent({ ...more, policy: { acceptTokenType: "User" } });
      const token = await (more === MACHINE ? first.token(mcp.url) : first.login(mcp.url));
      expect(token).toMatchObject({ value: "access-as-1", tokenType: "Bearer" });
      expect(await store.list()).toMatchObject([{ acceptedTokenType: "User" }]);
      await clock.sleep(HOUR_MS, SIGNAL);
      const later = agent({ ...more, login: undefined });
      expect((await later.fetch(mcp.url)).status).toBe(200);
      expect(mcp.tokens()).toEqual(["Bearer access-as-2"]);
      expect(await store.list()).toMatchObject([{ acceptedTokenType: "User" }]);
    },
  );

  it("is accepted in a refresh with the option, which is stored with the login then", async () => {
    const { agent, issuer, mcp, clock, store } = await issuing("Bearer");
    await agent().login(mcp.url);
    issuer.tokenAnswer = { token_type: "user" };
    await clock.sleep(HOUR_MS, SIGNAL);
    expect(await failureOf(agent().token(mcp.url))).toMatchObject({ remedy: { option: "acceptTokenType" } });
    expect((await agent({ policy: { acceptTokenType: "user" } }).token(mcp.url)).value).toBe("access-as-3");
    expect(await store.list()).toMatchObject([{ acceptedTokenType: "user" }]);
  });

  it("is accepted in the next login at the same issuer, and at no other issuer", async () => {
    const { agent, mcp, another } = await issuing("user");
    await agent({ policy: { acceptTokenType: "user" } }).login(mcp.url);
    expect((await agent().login(mcp.url)).value).toBe("access-as-2");
    const other = await another("other");
    other.tokenAnswer = { token_type: "user" };
    mcp.serveFor(other);
    expect(await failureOf(agent().login(mcp.url))).toMatchObject({ code: "bad_token_answer" });
  });

  it("is accepted in a login that another process finishes without the option", async () => {
    const { agent, mcp, login } = await issuing("user");
    const begun = await agent({ policy: { acceptTokenType: "user" } }).beginLogin(mcp.url, login.redirectUri);
    const prepared = decodeLogin(encodeLogin({ ...begun, profile: "default" }));
    const session = await login.open({ resource: mcp.url, issuer: prepared.issuer.issuer, signal: SIGNAL });
    expect((await agent().finishLogin(prepared, session)).value).toBe("access-as-1");
  });

  it("is accepted in an exchange at the issuer of a login that accepts it", async () => {
    const { agent, issuer, mcp } = await issuing("user");
    await agent({ policy: { acceptTokenType: "user" } }).login(mcp.url);
    issuer.tokenAnswer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token";
    expect(await agent().exchange(mcp.url, { audience: "billing" })).toMatchObject({ tokenType: "Bearer" });
  });

  it("is accepted in an exchange by a client without a login", async () => {
    const { agent, issuer, mcp } = await issuing("user");
    issuer.tokenAnswer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token";
    const client = { clientId: "service", clientSecret: "secret", issuer: issuer.issuer };
    const own = { subjectToken: "subject", audience: "billing" };
    expect(await agent({ client, policy: { acceptTokenType: "user" } }).exchange(mcp.url, own)).toMatchObject({
      tokenType: "Bearer",
    });
    expect(await failureOf(agent({ client }).exchange(mcp.url, own))).toMatchObject({ code: "bad_token_answer" });
  });

  it("is refused in an exchange without the option", async () => {
    const { agent, issuer, mcp } = await issuing("Bearer");
    await agent().login(mcp.url);
    issuer.tokenAnswer = { token_type: "user", issued_token_type: "urn:ietf:params:oauth:token-type:access_token" };
    expect(await failureOf(agent().exchange(mcp.url, { audience: "billing" }))).toMatchObject({
      code: "bad_token_answer",
      remedy: { action: "allow", option: "acceptTokenType", value: "user" },
    });
  });
});

describe("a token of a type that no option accepts", () => {
  it.each(["access_token", "refresh_token"])("is masked if it is the %s of the response", async (name) => {
    const { agent, issuer, mcp } = await issuing("Secret-Token-1");
    issuer.tokenAnswer[name] = "Secret-Token-1";
    const error = await failureOf(agent().login(mcp.url));
    expect(error).toMatchObject({ code: "bad_token_answer", message: expect.stringContaining("********") });
    expect(JSON.stringify(error)).not.toMatch(/secret-token/i);
  });

  it("is masked if it is the code of the request", async () => {
    const { agent, issuer, mcp } = await startScene();
    issuer.callback["code"] = "Secret-Code-1";
    issuer.tokenAnswer = { token_type: "Secret-Code-1" };
    expect(JSON.stringify(await failureOf(agent().login(mcp.url)))).not.toMatch(/secret-code/i);
  });

  it("is refused where another type is accepted, and the remedy names the type of the response", async () => {
    const { agent, mcp } = await issuing("mac");
    expect(await failureOf(agent({ policy: { acceptTokenType: "user" } }).login(mcp.url))).toMatchObject({
      remedy: { option: "acceptTokenType", value: "mac" },
    });
  });

  it("is refused in place of a token that is bound to a key", async () => {
    const { agent, issuer, mcp } = await issuing("user");
    issuer.metadata["dpop_signing_alg_values_supported"] = ["ES256"];
    const error = await failureOf(agent({ policy: { acceptTokenType: "user" }, dpop: "required" }).login(mcp.url));
    expect(error).toMatchObject({ message: expect.stringContaining('must be "DPoP"') });
    expect(error?.remedy).toBeUndefined();
  });

  it.each(["bearer", "DPoP", "N_A", "", "a b", "x".repeat(41)])("cannot be an option: %j", async (acceptTokenType) => {
    const { agent } = await startScene();
    expect(() => agent({ policy: { acceptTokenType } })).toThrow(/^policy\.acceptTokenType must be a name/);
  });
});

it("is stored in the file of a login, and a file without it can be read", () => {
  const grant = madeGrant({ acceptedTokenType: "user" });
  expect(plainGrant(decodeGrant(encodeGrant(grant)))).toEqual(plainGrant(grant));
  expect(decodeGrant(encodeGrant(madeGrant())).acceptedTokenType).toBeUndefined();
});
