import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { BOUND_BY, type BoundBy, type ClientBinding } from "../../oauth/client/client-binding.js";
import type { ServerMetadata } from "../../oauth/discovery/types.js";
import type { AuthMethod, ClientRecord, Grant, LostRefresh } from "../../oauth/grant/grant.js";
import type { PreparedLogin } from "../../oauth/login/prepared-login.js";
import { quote, Secret } from "../../redact.js";

/** The schema that is written; a file of another one is not touched. */
const SCHEMA = 1;

/** Why a stored text cannot be used. */
export class CodecError extends Error {
  override readonly name = "CodecError";
}

/**
 * The text of a grant, secrets and all: for private files only.
 *
 * @param before the text that this one replaces: what a newer version wrote there of the same login is kept
 */
export function encodeGrant(grant: Grant, before?: string): string {
  const { client, tokens } = grant;
  const members = {
    kind: "grant",
    ...grant,
    client: { ...client, clientSecret: client.clientSecret?.reveal() },
    proofKey: grant.proofKey?.reveal(),
    tokens: {
      ...tokens,
      accessToken: tokens.accessToken.reveal(),
      refreshToken: tokens.refreshToken?.reveal(),
      idToken: tokens.idToken?.reveal(),
    },
  };
  const old = before === undefined ? {} : decode(before, "grant");
  const sameLogin = old["signedInAt"] === grant.signedInAt && old["issuer"] === grant.issuer;
  return encode(sameLogin ? keepUnknown(old, members) : members);
}

/** Adds the members that this version does not know, at every level. */
function keepUnknown(old: Members, members: Members): Members {
  const unknown = Object.entries(old).filter(([name]) => !(name in members) && name !== "schema");
  const known = Object.entries(members).map(([name, value]) => {
    const before = old[name];
    return [name, isJsonObject(value) && isJsonObject(before) ? keepUnknown(before, value) : value] as const;
  });
  return Object.fromEntries([...unknown, ...known]);
}

/** The text of a registered client. */
export function encodeClient(client: ClientRecord): string {
  return encode({ kind: "client", ...client, clientSecret: client.clientSecret?.reveal() });
}

/** The text of a client's binding to its issuer. */
export function encodeBinding(binding: ClientBinding): string {
  return encode({ kind: "binding", ...binding });
}

function encode(value: object): string {
  return `${JSON.stringify({ schema: SCHEMA, ...value }, null, 2)}\n`;
}

/** @throws CodecError */
export function decodeGrant(text: string): Grant {
  const members = decode(text, "grant");
  const tokens = object(members, "tokens");
  const endpoints = object(members, "endpoints");
  const retired = members["retired"] === undefined ? undefined : object(members, "retired");
  return {
    profile: string(members, "profile"),
    server: string(members, "server"),
    account: optional(members, "account"),
    resource: string(members, "resource"),
    issuer: string(members, "issuer"),
    endpoints: {
      token: string(endpoints, "token"),
      introspection: optional(endpoints, "introspection"),
      revocation: optional(endpoints, "revocation"),
      endSession: optional(endpoints, "endSession"),
      jwks: optional(endpoints, "jwks"),
    },
    client: clientOf(object(members, "client")),
    requestedScope: optional(members, "requestedScope"),
    overrides: strings(members, "overrides"),
    proofKey: secret(members, "proofKey"),
    tokens: {
      accessToken: new Secret(string(tokens, "accessToken")),
      refreshToken: secret(tokens, "refreshToken"),
      idToken: secret(tokens, "idToken"),
      expiresAt: number(tokens, "expiresAt"),
      obtainedAt: number(tokens, "obtainedAt") ?? 0,
      scope: optional(tokens, "scope"),
    },
    signedInAt: number(members, "signedInAt") ?? 0,
    refusals: numbers(members, "refusals"),
    generation: number(members, "generation") ?? 0,
    ...(members["lostRefresh"] !== undefined && { lostRefresh: lostRefreshOf(object(members, "lostRefresh")) }),
    retired: retired && { at: number(retired, "at") ?? 0, reason: string(retired, "reason") },
  };
}

function lostRefreshOf(members: Members): LostRefresh {
  return {
    at: number(members, "at") ?? 0,
    code: string(members, "code"),
    generation: number(members, "generation") ?? 0,
  };
}

/** @throws CodecError */
export function decodeClient(text: string): ClientRecord {
  return clientOf(decode(text, "client"));
}

/** @throws CodecError */
export function decodeBinding(text: string): ClientBinding {
  const members = decode(text, "binding");
  const boundBy = string(members, "boundBy");
  if (!BOUND_BY.includes(boundBy as BoundBy)) throw new CodecError("boundBy is unknown");
  return {
    profile: string(members, "profile"),
    clientId: string(members, "clientId"),
    issuer: string(members, "issuer"),
    boundBy: boundBy as BoundBy,
    boundAt: number(members, "boundAt") ?? 0,
  };
}

type Members = Record<string, unknown>;

function decode(text: string, kind: string): Members {
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch (cause) {
    throw new CodecError(`it is not valid JSON: ${cause instanceof Error ? cause.message : ""}`);
  }
  const members = isJsonObject(value) ? value : {};
  if (members["schema"] !== SCHEMA) {
    throw new CodecError(`its schema is ${quote(members["schema"])}, and this version reads ${SCHEMA}`);
  }
  if (members["kind"] !== kind) throw new CodecError(`it contains no ${kind}`);
  return members;
}

const METHODS: readonly string[] = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
const SOURCES: readonly string[] = ["pre-registered", "metadata-document", "dynamic"];

function clientOf(members: Members): ClientRecord {
  const authMethod = string(members, "authMethod");
  const source = string(members, "source");
  if (!METHODS.includes(authMethod)) throw new CodecError("authMethod is unknown");
  if (!SOURCES.includes(source)) throw new CodecError("source is unknown");
  return {
    issuer: string(members, "issuer"),
    clientId: string(members, "clientId"),
    clientSecret: secret(members, "clientSecret"),
    secretExpiresAt: number(members, "secretExpiresAt"),
    authMethod: authMethod as AuthMethod,
    source: source as ClientRecord["source"],
    redirectUri: optional(members, "redirectUri"),
    ...(members["registeredAt"] !== undefined && { registeredAt: numbers(members, "registeredAt") }),
    ...(members["isRefused"] !== undefined && { isRefused: boolean(members, "isRefused") }),
  };
}

function object(members: Members, name: string): Members {
  const value = members[name];
  if (isJsonObject(value)) return value;
  throw new CodecError(`${name} is not an object`);
}

function string(members: Members, name: string): string {
  const value = members[name];
  if (typeof value === "string") return value;
  throw new CodecError(`${name} is not a string`);
}

function optional(members: Members, name: string): string | undefined {
  return members[name] === undefined ? undefined : string(members, name);
}

function secret(members: Members, name: string): Secret | undefined {
  const value = optional(members, name);
  return value === undefined ? undefined : new Secret(value);
}

function number(members: Members, name: string): number | undefined {
  const value = members[name];
  if (value === undefined || (typeof value === "number" && Number.isFinite(value))) return value;
  throw new CodecError(`${name} is not a number`);
}

function numbers(members: Members, name: string): number[] {
  const value = members[name] ?? [];
  if (Array.isArray(value) && value.every((one): one is number => Number.isFinite(one))) return value;
  throw new CodecError(`${name} is not a list of numbers`);
}

function strings(members: Members, name: string, need?: "needed"): string[] {
  const value = members[name] ?? (need ? undefined : []);
  if (Array.isArray(value) && value.every((one): one is string => typeof one === "string")) return value;
  throw new CodecError(`${name} is not a list of strings`);
}

function optionalStrings(members: Members, name: string): string[] | undefined {
  return members[name] === undefined ? undefined : strings(members, name);
}

function boolean(members: Members, name: string): boolean {
  const value = members[name];
  if (typeof value === "boolean") return value;
  throw new CodecError(`${name} is neither true nor false`);
}

function address(members: Members, name: string): string {
  const value = string(members, name);
  if (URL.canParse(value)) return value;
  throw new CodecError(`${name} is not an address`);
}

/** The text of a login on its way; its verifier and client secret are secrets. */
export function encodeLogin(login: PreparedLogin & { profile: string }): string {
  return encode({
    kind: "login",
    ...login,
    client: { ...login.client, clientSecret: login.client.clientSecret?.reveal() },
    proofKey: login.proofKey?.reveal(),
    pending: { ...login.pending, verifier: login.pending.verifier.reveal() },
  });
}

/**
 * Reads back what {@link encodeLogin} wrote.
 *
 * @throws CodecError
 */
export function decodeLogin(text: string): PreparedLogin & { profile: string } {
  const members = decode(text, "login");
  return {
    profile: string(members, "profile"),
    server: string(members, "server"),
    account: optional(members, "account"),
    issuer: serverOf(object(members, "issuer")),
    client: clientOf(object(members, "client")),
    scope: strings(members, "scope", "needed"),
    addedScope: strings(members, "addedScope"),
    resource: string(members, "resource"),
    overrides: strings(members, "overrides", "needed"),
    proofKey: secret(members, "proofKey"),
    pending: pendingOf(object(members, "pending")),
  };
}

function serverOf(members: Members): ServerMetadata {
  return {
    issuer: address(members, "issuer"),
    authorizationEndpoint: address(members, "authorizationEndpoint"),
    tokenEndpoint: address(members, "tokenEndpoint"),
    registrationEndpoint: optional(members, "registrationEndpoint"),
    introspectionEndpoint: optional(members, "introspectionEndpoint"),
    revocationEndpoint: optional(members, "revocationEndpoint"),
    endSessionEndpoint: optional(members, "endSessionEndpoint"),
    deviceAuthorizationEndpoint: optional(members, "deviceAuthorizationEndpoint"),
    jwksUri: optional(members, "jwksUri"),
    scopesSupported: optionalStrings(members, "scopesSupported"),
    grantTypesSupported: optionalStrings(members, "grantTypesSupported"),
    tokenEndpointAuthMethods: optionalStrings(members, "tokenEndpointAuthMethods"),
    tokenEndpointSigningAlgorithms: optionalStrings(members, "tokenEndpointSigningAlgorithms"),
    dpopSigningAlgorithms: optionalStrings(members, "dpopSigningAlgorithms"),
    promisesIss: boolean(members, "promisesIss"),
    takesClientIdDocuments: boolean(members, "takesClientIdDocuments"),
    url: string(members, "url"),
  };
}

function pendingOf(members: Members): PreparedLogin["pending"] {
  return {
    issuer: string(members, "issuer"),
    promisesIss: boolean(members, "promisesIss"),
    authorizationUrl: address(members, "authorizationUrl"),
    redirectUri: address(members, "redirectUri"),
    state: string(members, "state"),
    verifier: new Secret(string(members, "verifier")),
    clientId: string(members, "clientId"),
    scope: strings(members, "scope", "needed"),
    resource: optional(members, "resource"),
  };
}
