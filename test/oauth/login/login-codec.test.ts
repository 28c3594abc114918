import { describe, expect, it } from "vitest";
import type { PreparedLogin } from "../../../src/oauth/login/authorization.js";
import {
  decodeLogin,
  decodeMembers,
  decodeStoredLogin,
  encodeLogin,
  loginMembers,
  type StoredLogin,
} from "../../../src/oauth/login/login-codec.js";
import { CodecError } from "../../../src/oauth/model/codec.js";
import { Secret } from "../../../src/redact.js";
import { madeClient } from "../../helpers/grant.js";
import { serverMetadata } from "../../helpers/issuer.js";

const ISSUER = serverMetadata({
  namedIssuer: "https://named.example",
  introspectionEndpoint: "https://as.example/introspect",
  revocationEndpoint: "https://as.example/revoke",
  endSessionEndpoint: "https://as.example/end",
  deviceAuthorizationEndpoint: "https://as.example/device",
  jwksUri: "https://as.example/jwks",
  scopesSupported: ["a"],
  grantTypesSupported: ["b"],
  grantProfilesSupported: ["c"],
  tokenEndpointAuthMethods: ["d"],
  tokenEndpointSigningAlgorithms: ["e"],
  dpopSigningAlgorithms: ["f"],
  promisesIss: true,
  takesClientIdDocuments: true,
});
const COMMON = {
  profile: "work",
  ttlMs: 60_000,
  server: "https://mcp.example/mcp",
  account: "ann",
  issuer: ISSUER,
  client: madeClient({ clientSecret: undefined }),
  scope: ["a", "b"],
  resource: "https://mcp.example/mcp",
  overrides: ["legacyDiscovery"],
  acceptedTokenType: "user",
  authorizationParams: { prompt: "consent" },
  needsConsent: true,
  proofKey: undefined,
};
const LOGIN = {
  ...COMMON,
  flow: undefined,
  addedScope: ["b"],
  pending: {
    state: "state-1",
    authorizationUrl: "https://as.example/authorize?x=1",
    redirectUri: "http://127.0.0.1/callback",
    verifier: new Secret("verifier-1"),
    nonce: "nonce-1",
  } as PreparedLogin["pending"],
};
const DEVICE: StoredLogin = {
  ...COMMON,
  flow: "device",
  device: {
    deviceCode: new Secret("device-1"),
    userCode: "ABCD",
    verificationUri: "https://as.example/go",
    verificationUriComplete: "https://as.example/go?c=ABCD",
    intervalSeconds: 5,
    expiresAt: 1000,
  },
};

/** A login as plain data. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_name, one: unknown) => (one instanceof Secret ? `secret ${one.reveal()}` : one)));

describe("a login between its two steps", () => {
  it("is read with every member that it was written with", () => {
    expect(plain(decodeLogin(encodeLogin(LOGIN)))).toEqual(plain(LOGIN));
    expect(plain(decodeMembers(JSON.parse(JSON.stringify(loginMembers(LOGIN)))))).toEqual(plain(LOGIN));
    const bound = { ...LOGIN, proofKey: new Secret("key-1"), flow: "paste" } as const;
    expect(decodeLogin(encodeLogin(bound))).toMatchObject({ flow: "paste" });
    expect(decodeLogin(encodeLogin(bound)).proofKey?.reveal()).toBe("key-1");
  });

  it("is of the kind that it was stored as", () => {
    expect(plain(decodeStoredLogin(encodeLogin(DEVICE)))).toEqual(plain(DEVICE));
    expect(plain(decodeStoredLogin(encodeLogin(LOGIN)))).toEqual(plain(LOGIN));
    expect(() => decodeLogin(encodeLogin(DEVICE))).toThrow(new CodecError("it contains no login"));
    const asDevice = encodeLogin(LOGIN).replace('"kind": "login"', '"kind": "device-login"');
    expect(() => decodeStoredLogin(asDevice)).toThrow(CodecError);
    const { kind, ...members } = JSON.parse(encodeLogin(DEVICE)) as Record<string, unknown>;
    expect(plain(decodeStoredLogin(JSON.stringify({ ...members, kind }, null, 2)))).toEqual(plain(DEVICE));
  });

  it.each<[string, unknown, string]>([
    ["profile", undefined, "profile is not a string"],
    ["ttlMs", "x", "ttlMs is not a number"],
    ["scope", undefined, "scope is not a list of strings"],
    ["overrides", undefined, "overrides is not a list of strings"],
    ["addedScope", [1], "addedScope is not a list of strings"],
    ["issuer.issuer", "x", "issuer is not an address"],
    ["issuer.authorizationEndpoint", "x", "authorizationEndpoint is not an address"],
    ["issuer.tokenEndpoint", undefined, "tokenEndpoint is not a string"],
    ["issuer.promisesIss", undefined, "promisesIss is neither true nor false"],
    ["issuer.takesClientIdDocuments", 1, "takesClientIdDocuments is neither true nor false"],
    ["issuer.scopesSupported", "x", "scopesSupported is not a list of strings"],
    ["issuer.url", undefined, "url is not a string"],
    ["pending.state", undefined, "state is not a string"],
    ["pending.authorizationUrl", "nowhere", "authorizationUrl is not an address"],
    ["pending.redirectUri", "", "redirectUri is not an address"],
    ["pending.verifier", undefined, "verifier is not a string"],
    ["needsConsent", "x", "needsConsent is neither true nor false"],
  ])("cannot be used where its %s is %j", (path, value, message) => {
    const members = JSON.parse(encodeLogin(LOGIN)) as Record<string, Record<string, unknown>>;
    const [outer = "", inner] = path.split(".");
    if (inner === undefined) Object.assign(members, { [outer]: value });
    else Object.assign(members[outer] ?? {}, { [inner]: value });
    expect(() => decodeLogin(JSON.stringify(members))).toThrow(new CodecError(message));
  });

  it.each<[string, unknown, string]>([
    ["deviceCode", undefined, "deviceCode is not a string"],
    ["userCode", 7, "userCode is not a string"],
    ["verificationUri", "x", "verificationUri is not an address"],
    ["intervalSeconds", "x", "intervalSeconds is not a number"],
    ["expiresAt", "x", "expiresAt is not a number"],
  ])("on another device cannot be used where its %s is %j", (name, value, message) => {
    const members = JSON.parse(encodeLogin(DEVICE)) as { device: object };
    Object.assign(members.device, { [name]: value });
    expect(() => decodeStoredLogin(`${JSON.stringify(members, null, 2)}\n`)).toThrow(new CodecError(message));
  });
});
