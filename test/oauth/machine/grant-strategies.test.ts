import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import {
  fingerprintSource,
  GRANT_STRATEGIES,
  identify,
  machineFailure,
  noInteractiveLoginError,
  noStoredTokenError,
  parseExtension,
  readSubject,
} from "../../../src/oauth/machine/grant-strategies.js";
import type { MachineGrant } from "../../../src/oauth/model/machine-grant.js";
import { unsignedJwt } from "../../helpers/client-keys.js";
import { madeClient } from "../../helpers/grant.js";

const CREDENTIALS: MachineGrant = { type: "client_credentials" };
const BEARER: MachineGrant = { type: "jwt_bearer", workload: "w", assertion: () => "a" };
const idp = { tokenEndpoint: "https://idp.example/token", clientId: "at-idp" };
const JAG: MachineGrant = { type: "id_jag", idp, idToken: () => " id-token " };
const BY_LOGIN: MachineGrant = {
  ...JAG,
  idp: { ...idp, issuer: "https://idp.example" },
  subject: async () => ({ idToken: "t" }),
};

const FLAGS = Object.values(GRANT_STRATEGIES).map(({ flag }) => flag);

it("the machine grants are named, described, and of an extension where there is one", () => {
  expect(FLAGS).toEqual(["client-credentials", "jwt-bearer", "id-jag"]);
  expect(Object.values(GRANT_STRATEGIES).map(({ description }) => description)).toEqual([
    "the client on its own behalf (RFC 6749 section 4.4)",
    "an assertion that the issuer trusts (RFC 7523)",
    "an id token of the company's identity provider (enterprise-managed authorization)",
  ]);
  expect([...FLAGS, undefined].map(parseExtension)).toEqual([
    "io.modelcontextprotocol/oauth-client-credentials",
    undefined,
    "io.modelcontextprotocol/enterprise-managed-authorization",
    undefined,
  ]);
});

describe("what helps against an error of the issuer", () => {
  const failed = (code: string) => new AgentAuthError(code, "m", { class: "auth" });
  const adviceFor = (code: string, grant: MachineGrant, over = {}) => {
    const error = machineFailure(failed(code), { grant, client: madeClient(over) }) as AgentAuthError;
    return [error.code, error.hint, error.remedy];
  };
  const SECRET = { action: "configure", option: "clientSecret", clientId: "client-1" };

  it.each<[string, MachineGrant, object, string | undefined, object | undefined]>([
    ["invalid_client", CREDENTIALS, {}, 'check the client "client-1" and its clientSecret', SECRET],
    [
      "invalid_client",
      CREDENTIALS,
      { authMethod: "private_key_jwt" },
      'check the client "client-1" and its privateKey',
      { ...SECRET, option: "privateKey" },
    ],
    [
      "invalid_client",
      CREDENTIALS,
      { authMethod: "none" },
      'check the client "client-1"',
      { ...SECRET, option: "clientId" },
    ],
    ["invalid_client", JAG, {}, 'check the client "client-1" and its clientSecret', { ...SECRET, also: "idp" }],
    [
      "invalid_client",
      BEARER,
      { clientId: "" },
      "set client.clientId: the issuer requires a client for this grant",
      { action: "configure", option: "clientId" },
    ],
    [
      "unauthorized_client",
      BEARER,
      { clientId: "" },
      "set client.clientId: the issuer requires a client for this grant",
      { action: "configure", option: "clientId" },
    ],
    [
      "unauthorized_client",
      BEARER,
      {},
      'the client "client-1" has to be allowed the grant jwt_bearer at the issuer',
      undefined,
    ],
    [
      "unsupported_grant_type",
      CREDENTIALS,
      {},
      "the issuer does not do the grant client_credentials",
      { action: "inspect", subject: "grants" },
    ],
    [
      "invalid_scope",
      CREDENTIALS,
      {},
      "ask for scopes that the issuer gives this client",
      { action: "configure", option: "scope" },
    ],
    [
      "invalid_grant",
      BEARER,
      {},
      "the assertion must be current, for this issuer, not used before, and from a party that the issuer trusts",
      { action: "configure", option: "assertion" },
    ],
    [
      "invalid_grant",
      JAG,
      {},
      "log in again at the identity provider, and give its new id token",
      { action: "configure", option: "idToken" },
    ],
    [
      "invalid_grant",
      BY_LOGIN,
      {},
      'ask the administrators of the server whether its issuer trusts "https://idp.example" and knows the user and the client',
      undefined,
    ],
    ["invalid_grant", CREDENTIALS, {}, undefined, undefined],
    ["access_denied", BEARER, {}, undefined, undefined],
    ["access_denied", JAG, {}, undefined, undefined],
  ])("%s of %o: %s", (code, grant, over, hint, remedy) => {
    expect(adviceFor(code, grant, over)).toEqual([code, hint, remedy]);
  });

  it("is not added where there is advice, or to a bug", () => {
    const requested = { grant: CREDENTIALS, client: madeClient() };
    for (const error of [
      new Error("x"),
      new AgentAuthError("invalid_client", "m", { class: "auth", hint: "own" }),
      new AgentAuthError("invalid_client", "m", { class: "auth", remedy: { action: "retry" } }),
    ])
      expect(machineFailure(error, requested)).toBe(error);
  });
});

describe("whom a machine grant is for", () => {
  it("is the client alone, the workload, or who the id token names", async () => {
    expect(await identify(CREDENTIALS, "c")).toEqual({ account: "grant:client_credentials:c", proof: undefined });
    const hash = (await fingerprintSource(["w"])).slice(0, 16);
    expect(await identify(BEARER, "")).toEqual({ account: `grant:jwt_bearer:${hash}`, proof: undefined });
    expect(await identify({ ...BEARER, workload: () => "w" }, "")).toMatchObject({
      account: `grant:jwt_bearer:${hash}`,
    });
    const jag = (await fingerprintSource([idp.tokenEndpoint, idp.clientId], "id-token")).slice(0, 16);
    expect(await identify(JAG, "c")).toEqual({ account: `grant:id_jag:c:${jag}`, proof: "id-token" });
  });

  it("is named by its subject, else by the proof", async () => {
    expect(readSubject(await unsignedJwt({ iss: "i", sub: "s", exp: 1 }))).toEqual(["i", "s"]);
    expect(readSubject(await unsignedJwt({ iss: "i" }))).toEqual(["i", undefined]);
    expect(readSubject(await unsignedJwt({ sub: "s" }))).toEqual([undefined, "s"]);
    expect(readSubject("opaque")).toEqual(["opaque"]);
    const without = await unsignedJwt({ exp: 1 });
    expect(readSubject(without)).toEqual([without]);
  });

  it("is a hash in hexadecimal digits", async () => {
    expect(await fingerprintSource(["a", "b"])).toMatch(/^[0-9a-f]{64}$/);
    expect(await fingerprintSource(["a"], "b")).toBe(await fingerprintSource(["a", "b"]));
    expect(await fingerprintSource(["ab"])).not.toBe(await fingerprintSource(["a", "b"]));
  });
});

it("a machine grant has no interactive login, and no stored token at first", () => {
  expect(noInteractiveLoginError(CREDENTIALS)).toMatchObject({
    code: "usage",
    class: "usage",
    message: "the grant client_credentials has no interactive login",
    hint: "token() gets a token",
    remedy: { action: "token", grant: "client_credentials" },
  });
  expect(noStoredTokenError("https://mcp.example")).toMatchObject({
    code: "login_required",
    class: "auth",
    message: 'no token of this grant is stored for "https://mcp.example"',
    hint: "token() gets one",
    remedy: { action: "token" },
  });
});
