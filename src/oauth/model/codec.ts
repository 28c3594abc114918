import { errorMessage } from "../../errors.js";
import { parseUrl } from "../../http/address.js";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { quote, Secret } from "../../redact.js";
import type { ClientRecord, Grant } from "./grant.js";
import { BOUND_BY, type ClientBinding } from "./grant-store.js";

export const readOptional = ifPresent(readString);
export const readSecret = ifPresent(readRequiredSecret);
export const readOptionalStrings = ifPresent(readRequiredStrings);
export const readOptionalBoolean = ifPresent(readBoolean);
export const readOptionalTexts = ifPresent(readTexts);

/**
 * The text of a grant, with its secrets: for private files only.
 *
 * @param before the text that this one replaces: members of the same login that a newer version wrote are preserved
 */
export function encodeGrant(grant: Grant, before?: string): string {
  const members = revealSecrets({ kind: "grant", ...grant });
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

export function encodeBinding(binding: ClientBinding): string {
  return encode({ kind: "binding", ...binding });
}

/** @throws CodecError */
export function decodeGrant(text: string): Grant {
  return readMembers(decode(text, "grant"), GRANT);
}

/** @throws CodecError */
export function decodeClient(text: string): ClientRecord {
  return readMembers(decode(text, "client"), CLIENT);
}

/** @throws CodecError */
export function decodeBinding(text: string): ClientBinding {
  return readMembers(decode(text, "binding"), BINDING);
}

const BINDING: Readers<ClientBinding> = {
  boundBy: readOneOf(BOUND_BY),
  ...readEach(readString, "profile", "clientId", "issuer"),
  boundAt: readCount,
};

export const CLIENT: Readers<ClientRecord> = {
  ...readEach(readString, "issuer", "clientId"),
  clientSecret: readSecret,
  secretExpiresAt: readNumber,
  authMethod: readOneOf(["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]),
  alternateMethod: ifPresent(readOneOf(["client_secret_basic", "client_secret_post"])),
  isRawBasic: (members, name) => (members[name] === true ? true : undefined),
  source: readOneOf(["pre-registered", "metadata-document", "dynamic"]),
  ...readEach(readOptional, "redirectUri", "clientName"),
  registeredAt: ifPresent(readNumbers),
  isRefused: readOptionalBoolean,
};

const GRANT: Readers<Grant> = {
  acceptedTokenType: readOptional,
  authorizationParams: readOptionalTexts,
  ...readEach(
    readOptionalBoolean,
    "needsConsent",
    "refreshesWithScope",
    "refreshesWithoutResource",
    "reusesRefreshToken",
    "exchanges",
  ),
  ...readEach(readString, "profile", "server"),
  account: readOptional,
  ...readEach(readString, "resource", "issuer"),
  namedIssuer: readOptional,
  endpoints: readNested({
    token: readString,
    ...readEach(readOptional, "introspection", "revocation", "endSession", "jwks"),
  }),
  client: readNested(CLIENT),
  requestedScope: readOptional,
  overrides: readStrings,
  ...readEach(readSecret, "proofKey", "recipe"),
  tokens: readNested({
    accessToken: readRequiredSecret,
    ...readEach(readSecret, "refreshToken", "idToken"),
    expiresAt: readNumber,
    obtainedAt: readCount,
    scope: readOptional,
  }),
  signedInAt: readCount,
  usedAt: readNumber,
  refusals: readNumbers,
  generation: readCount,
  lostRefresh: ifPresent(readNested({ at: readCount, code: readString, generation: readCount })),
  retired: ifPresent(readNested({ at: readCount, reason: readString })),
};

/** The schema that is written; a file of another one is not touched. */
const SCHEMA = 1;

/** Why a stored text cannot be used. */
export class CodecError extends Error {
  override readonly name = "CodecError";
}

export type Members = Record<string, unknown>;
export type Reader<T> = (members: Members, name: string) => T;
export type Readers<T> = { [K in keyof T]-?: Reader<T[K]> };

export function encode(members: Members): string {
  return `${JSON.stringify(withSchema(members), null, 2)}\n`;
}

export function withSchema(members: Members): Members {
  return { schema: SCHEMA, ...revealSecrets(members) };
}

function revealSecrets(members: Members): Members {
  const reveal = (value: unknown) =>
    value instanceof Secret ? value.reveal() : isJsonObject(value) ? revealSecrets(value) : value;
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, reveal(value)]));
}

export function decode(text: string, kind: string): Members {
  return requireMembers(parse(text), kind);
}

function parse(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (cause) {
    throw new CodecError(`it is not valid JSON: ${errorMessage(cause)}`);
  }
}

export function requireMembers(value: unknown, kind: string): Members {
  const members = isJsonObject(value) ? value : {};
  if (members["schema"] !== SCHEMA)
    throw new CodecError(`its schema is ${quote(members["schema"])}, and this version reads ${SCHEMA}`);
  if (members["kind"] !== kind) throw new CodecError(`it contains no ${kind}`);
  return members;
}

export function readMembers<T>(members: Members, readers: Readers<T>): T {
  const found: Partial<T> = {};
  for (const name of Object.keys(readers) as (keyof T & string)[]) found[name] = readers[name](members, name);
  return found as T;
}

export function readObject(members: Members, name: string): Members {
  const value = members[name];
  if (isJsonObject(value)) return value;
  throw new CodecError(`${name} is not an object`);
}

/** A reader of a member that may be absent. */
export function ifPresent<T>(reader: Reader<T>): Reader<T | undefined> {
  return (members, name) => (members[name] === undefined ? undefined : reader(members, name));
}

function readOneOf<T extends string>(values: readonly T[]): Reader<T> {
  return (members, name) => {
    const value = readString(members, name) as T;
    if (values.includes(value)) return value;
    throw new CodecError(`${name} is unknown`);
  };
}

export function readString(members: Members, name: string): string {
  const value = members[name];
  if (typeof value === "string") return value;
  throw new CodecError(`${name} is not a string`);
}

export function readRequiredSecret(members: Members, name: string): Secret {
  return new Secret(readString(members, name));
}

export function readNumber(members: Members, name: string): number | undefined {
  const value = members[name];
  if (value === undefined || typeof value === "number") return value;
  throw new CodecError(`${name} is not a number`);
}

/** An absent number counts as 0. */
export function readCount(members: Members, name: string): number {
  return readNumber(members, name) ?? 0;
}

function readNumbers(members: Members, name: string): number[] {
  const value = members[name] ?? [];
  if (Array.isArray(value) && value.every((one): one is number => Number.isFinite(one))) return value;
  throw new CodecError(`${name} is not a list of numbers`);
}

export function readStrings(members: Members, name: string): string[] {
  return readOptionalStrings(members, name) ?? [];
}

export function readRequiredStrings(members: Members, name: string): string[] {
  const value = members[name];
  if (Array.isArray(value) && value.every((one): one is string => typeof one === "string")) return value;
  throw new CodecError(`${name} is not a list of strings`);
}

export function readBoolean(members: Members, name: string): boolean {
  const value = members[name];
  if (typeof value === "boolean") return value;
  throw new CodecError(`${name} is neither true nor false`);
}

function readTexts(members: Members, name: string): Record<string, string> {
  const texts = readObject(members, name);
  return Object.fromEntries(Object.keys(texts).map((one) => [one, readString(texts, one)]));
}

export function readUrl(members: Members, name: string): string {
  const value = readString(members, name);
  if (parseUrl(value) !== undefined) return value;
  throw new CodecError(`${name} is not an address`);
}

export function readEach<R, N extends string>(reader: R, ...names: N[]): Record<N, R> {
  return Object.fromEntries(names.map((name) => [name, reader])) as Record<N, R>;
}

export function readNested<T>(readers: Readers<T>): Reader<T> {
  return (members, name) => readMembers(readObject(members, name), readers);
}
