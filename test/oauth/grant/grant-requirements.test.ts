import { describe, expect, it } from "vitest";
import {
  findUnmetRequirement,
  LOGIN_HINT,
  loginRemedy,
  loginRequired,
  machineAccountError,
  missingParams,
} from "../../../src/oauth/grant/grant-requirements.js";
import { Secret } from "../../../src/redact.js";
import { pendingError } from "../../helpers/captured.js";
import { madeGrant } from "../../helpers/grant.js";
import { startScene } from "../../helpers/issuer.js";

describe("a login that is stored", () => {
  it("is not used in place of one for another resource", async () => {
    const { agent, mcp, issuer } = await startScene();
    await agent().login(mcp.url);
    const resource = "https://other.example/mcp";
    expect(await pendingError(agent({ resource, login: undefined }).token(mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining(`the token is for "${mcp.url}"`),
    });
    expect((await agent({ resource }).token(mcp.url)).resource).toBe(resource);
    expect(issuer.form("/pool/token", 1).get("resource")).toBe(resource);
    expect((await agent({ resource }).token(mcp.url)).value).toBe("access-as-2");
    expect((await agent().token(mcp.url)).value).toBe("access-as-2");
  });

  it("is not used in place of one of another client", async () => {
    const { agent, mcp, issuer } = await startScene();
    await agent().login(mcp.url);
    const client = { clientId: "mine", clientSecret: "secret" };
    expect(await pendingError(agent({ client, login: undefined }).token(mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining('the token was issued to the client "client-as-1"'),
    });
    expect((await agent({ client }).token(mcp.url)).value).toBe("access-as-2");
    expect(atob(issuer.to("/pool/token")[1]?.headers.authorization?.replace("Basic ", "") ?? "")).toBe("mine:secret");
    expect((await agent({ client, login: undefined }).token(mcp.url)).value).toBe("access-as-2");
  });

  it("is used where the caller names no resource and no client", async () => {
    const { agent, mcp } = await startScene();
    const client = { clientId: "mine", clientSecret: "secret" };
    await agent({ client, resource: "https://other.example/mcp" }).login(mcp.url);
    expect((await agent({ login: undefined }).token(mcp.url)).value).toBe("access-as-1");
  });
});

const server = "https://mcp.example/mcp";

describe("the login that helps", () => {
  it("names what it is for, and leaves out what is the default", () => {
    expect(loginRemedy({ profile: "default", server }, { dpop: "auto", scope: "" })).toEqual({
      action: "login",
      server,
    });
    expect(loginRemedy({ profile: "work", server, account: "ann" }, { scope: "a b", dpop: "required" })).toEqual({
      action: "login",
      server,
      profile: "work",
      account: "ann",
      scope: "a b",
      dpop: "required",
    });
  });

  it("is the remedy of an error that names the profile and the account", () => {
    const error = loginRequired({ profile: "work", server, account: "ann" }, "no login", { scope: "a" });
    expect(error).toMatchObject({ code: "login_required", class: "auth", hint: LOGIN_HINT });
    expect(error.message).toBe(`a login is required for "${server}" (profile work, account "ann"): no login`);
    expect(error.remedy).toEqual({ action: "login", server, profile: "work", account: "ann", scope: "a" });
  });
});

describe("the login that helps at an identity provider, or for more than scopes", () => {
  it("names the provider in place of an account", () => {
    const key = { profile: "default", server, account: "grant:idp" };
    expect(loginRemedy(key)).toEqual({ action: "login", server, idp: true });
    expect(loginRequired(key, "x").message).toBe(`a login is required for "${server}" (profile default): x`);
  });

  it("names the address of the metadata, and the parameters", () => {
    const resourceMetadata = "https://mcp.example/metadata";
    const authorizationParams = { access_type: "offline" };
    expect(loginRemedy({ profile: "default", server }, { resourceMetadata, authorizationParams })).toEqual({
      action: "login",
      server,
      resourceMetadata,
      authorizationParams,
    });
  });

  it("has the error that it comes from", () => {
    const cause = new Error("x");
    expect(loginRequired({ profile: "default", server }, "x", { cause }).cause).toBe(cause);
  });
});

describe("a grant", () => {
  const none = { dpop: "auto", preRegistered: undefined } as const;

  it.each<[object, object, string | undefined]>([
    [{}, {}, undefined],
    [{}, { dpop: "off" }, undefined],
    [{}, { dpop: "required" }, "the token is not bound to a key (DPoP)"],
    [{ proofKey: new Secret("k") }, { dpop: "off" }, "the token is bound to a key (DPoP)"],
    [{ proofKey: new Secret("k") }, { dpop: "required" }, undefined],
    [{}, { resource: "https://mcp.example/mcp" }, undefined],
    [{}, { resource: "https://other.example" }, 'the token is for "https://mcp.example/mcp"'],
    [{ resource: "none" }, { resource: "https://other.example" }, "the token was requested without a resource"],
    [{}, { expectedIssuer: "https://as.example/pool" }, undefined],
    [{}, { expectedIssuer: "https://other.example" }, 'the token comes from the issuer "https://as.example/pool"'],
    [{}, { preRegistered: { clientId: "client-1" } }, undefined],
    [{}, { preRegistered: { clientId: "other" } }, 'the token was issued to the client "client-1"'],
  ])("%j of which %j is required: %s", (over, requirements, reason) => {
    expect(findUnmetRequirement(madeGrant(over), { ...none, ...requirements })).toBe(reason);
  });

  const google = "https://accounts.google.com";
  const without = { tokens: { ...madeGrant().tokens, refreshToken: undefined } };
  const OFFLINE = { access_type: "offline", prompt: "consent" };

  it.each([
    [{ issuer: google, ...without }, OFFLINE],
    [{ issuer: google, ...without, authorizationParams: { prompt: "consent" } }, OFFLINE],
    [{ issuer: google, ...without, authorizationParams: OFFLINE }, undefined],
    [{ issuer: google }, undefined],
    [without, undefined],
  ])("%j lacks the parameters %j", (over, expected) => {
    expect(missingParams(madeGrant(over))).toEqual(expected);
  });
});

it("the account of a machine grant has no interactive login", () => {
  expect(machineAccountError("grant:jwt_bearer:w")).toMatchObject({
    code: "usage",
    class: "usage",
    message: 'the account "grant:jwt_bearer:w" belongs to a machine grant and has no interactive login',
    hint: "token() of a client with this grant gets a token",
    remedy: { action: "token", grant: "jwt_bearer" },
  });
});
