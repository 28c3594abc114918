import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { parseUrl } from "../../http/url.js";
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
 * The text of a grant, with its secrets: for private files only.
 *
 * @param before the text that this one replaces: members of the same login that a newer version wrote are preserved
 */
export function encodeGrant(grant: Grant, before?: string): string {
  const members = revealed({ kind: "grant", ...grant });
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
  return encode({ kind: "client", ...client });
}

/** The text of a client's binding to its issuer. */
export function encodeBinding(binding: ClientBinding): string {
  return encode({ kind: "binding", ...binding });
}

function encode(members: Members): string {
  return `${JSON.stringify({ schema: SCHEMA, ...revealed(members) }, null, 2)}\n`;
}

/** The members with their secrets in the clear. */
function revealed(members: Members): Members {
  const reveal = (value: unknown) => (isSecret(value) ? value.reveal() : isJsonObject(value) ? revealed(value) : value);
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, reveal(value)]));
}

/** In the package, the bundled store has a class `Secret` apart from that of the library, so `instanceof` is not enough. */
function isSecret(value: unknown): value is Secret {
  return typeof (value as Partial<Secret> | undefined | null)?.reveal === "function";
}

/** @throws CodecError */
export function decodeGrant(text: string): Grant {
  const members = decode(text, "grant");
  const grant: Grant = read(members, GRANT);
  return members["lostRefresh"] === undefined ? grant : { ...grant, lostRefresh: lostRefresh(members, "lostRefresh") };
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
    boundAt: count(members, "boundAt"),
  };
}

type Members = Record<string, unknown>;
type Reader<T> = (members: Members, name: string) => T;
type Readers<T> = { [K in keyof T]-?: Reader<T[K]> };

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

/** Reads every member of an object, each by its reader. */
function read<T>(members: Members, readers: Readers<T>): T {
  const entries = Object.entries<Reader<unknown>>(readers);
  return Object.fromEntries(entries.map(([name, reader]) => [name, reader(members, name)])) as T;
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

function requiredSecret(members: Members, name: string): Secret {
  return new Secret(string(members, name));
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

/** An absent number counts as 0. */
function count(members: Members, name: string): number {
  return number(members, name) ?? 0;
}

function numbers(members: Members, name: string): number[] {
  const value = members[name] ?? [];
  if (Array.isArray(value) && value.every((one): one is number => Number.isFinite(one))) return value;
  throw new CodecError(`${name} is not a list of numbers`);
}

function strings(members: Members, name: string): string[] {
  return optionalStrings(members, name) ?? [];
}

function requiredStrings(members: Members, name: string): string[] {
  const value = members[name];
  if (Array.isArray(value) && value.every((one): one is string => typeof one === "string")) return value;
  throw new CodecError(`${name} is not a list of strings`);
}

function optionalStrings(members: Members, name: string): string[] | undefined {
  return members[name] === undefined ? undefined : requiredStrings(members, name);
}

function boolean(members: Members, name: string): boolean {
  const value = members[name];
  if (typeof value === "boolean") return value;
  throw new CodecError(`${name} is neither true nor false`);
}

function address(members: Members, name: string): string {
  const value = string(members, name);
  if (parseUrl(value) !== undefined) return value;
  throw new CodecError(`${name} is not an address`);
}

/** The text of a prepared login, with its secrets. */
export function encodeLogin(login: PreparedLogin & { profile: string }): string {
  return encode({ kind: "login", ...login });
}

/** @throws CodecError */
export function decodeLogin(text: string): PreparedLogin & { profile: string } {
  return read(decode(text, "login"), LOGIN);
}

/** The same reader for several members. */
function each<R, N extends string>(reader: R, ...names: N[]): Record<N, R> {
  return Object.fromEntries(names.map((name) => [name, reader])) as Record<N, R>;
}

/** The reader of a member that is an object. */
function nested<T>(readers: Readers<T>): Reader<T> {
  return (members, name) => read(object(members, name), readers);
}

const client: Reader<ClientRecord> = (members, name) => clientOf(object(members, name));
const retired = nested<NonNullable<Grant["retired"]>>({ at: count, reason: string });
const lostRefresh = nested<LostRefresh>({ at: count, code: string, generation: count });

const GRANT: Readers<Omit<Grant, "lostRefresh">> = {
  ...each(string, "profile", "server"),
  account: optional,
  ...each(string, "resource", "issuer"),
  endpoints: nested({ token: string, ...each(optional, "introspection", "revocation", "endSession", "jwks") }),
  client,
  requestedScope: optional,
  overrides: strings,
  proofKey: secret,
  tokens: nested({
    accessToken: requiredSecret,
    ...each(secret, "refreshToken", "idToken"),
    expiresAt: number,
    obtainedAt: count,
    scope: optional,
  }),
  signedInAt: count,
  refusals: numbers,
  generation: count,
  retired: (members, name) => (members[name] === undefined ? undefined : retired(members, name)),
};

const SERVER: Readers<ServerMetadata> = {
  ...each(address, "issuer", "authorizationEndpoint", "tokenEndpoint"),
  ...each(optional, "registrationEndpoint", "introspectionEndpoint", "revocationEndpoint", "endSessionEndpoint"),
  ...each(optional, "deviceAuthorizationEndpoint", "jwksUri"),
  ...each(optionalStrings, "scopesSupported", "grantTypesSupported", "tokenEndpointAuthMethods"),
  ...each(optionalStrings, "tokenEndpointSigningAlgorithms", "dpopSigningAlgorithms"),
  ...each(boolean, "promisesIss", "takesClientIdDocuments"),
  url: string,
};

const LOGIN: Readers<PreparedLogin & { profile: string }> = {
  ...each(string, "profile", "server"),
  account: optional,
  issuer: nested(SERVER),
  client,
  scope: requiredStrings,
  addedScope: strings,
  resource: string,
  overrides: requiredStrings,
  proofKey: secret,
  pending: nested({
    ...each(string, "issuer", "state", "clientId"),
    ...each(address, "authorizationUrl", "redirectUri"),
    promisesIss: boolean,
    verifier: requiredSecret,
    scope: requiredStrings,
    resource: optional,
  }),
};
