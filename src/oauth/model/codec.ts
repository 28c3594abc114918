import { isJsonObject } from "../../http/strict-json.js";
import { BOUND_BY, type BoundBy, type ClientBinding } from "./client-binding.js";
import type { AuthMethod, ClientRecord, Grant, LostRefresh } from "./grant.js";
import {
  CodecError,
  decode,
  encode,
  type Members,
  type Reader,
  type Readers,
  readBoolean,
  readCount,
  readEach,
  readMembers,
  readNested,
  readNumber,
  readNumbers,
  readObject,
  readOptional,
  readOptionalBoolean,
  readOptionalTexts,
  readRequiredSecret,
  readSecret,
  readString,
  readStrings,
  revealed,
} from "./members.js";

export { CodecError } from "./members.js";

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

/** @throws CodecError */
export function decodeGrant(text: string): Grant {
  const members = decode(text, "grant");
  const grant: Grant = readMembers(members, GRANT);
  return members["lostRefresh"] === undefined ? grant : { ...grant, lostRefresh: lostRefresh(members, "lostRefresh") };
}

/** @throws CodecError */
export function decodeClient(text: string): ClientRecord {
  return clientOf(decode(text, "client"));
}

/** @throws CodecError */
export function decodeBinding(text: string): ClientBinding {
  const members = decode(text, "binding");
  const boundBy = readString(members, "boundBy");
  if (!BOUND_BY.includes(boundBy as BoundBy)) throw new CodecError("boundBy is unknown");
  return {
    profile: readString(members, "profile"),
    clientId: readString(members, "clientId"),
    issuer: readString(members, "issuer"),
    boundBy: boundBy as BoundBy,
    boundAt: readCount(members, "boundAt"),
  };
}

const METHODS: readonly string[] = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
const SOURCES: readonly string[] = ["pre-registered", "metadata-document", "dynamic"];

/** A client from its members. @throws CodecError */
export function clientOf(members: Members): ClientRecord {
  const authMethod = readString(members, "authMethod");
  const source = readString(members, "source");
  if (!METHODS.includes(authMethod)) throw new CodecError("authMethod is unknown");
  if (!SOURCES.includes(source)) throw new CodecError("source is unknown");
  return {
    issuer: readString(members, "issuer"),
    clientId: readString(members, "clientId"),
    clientSecret: readSecret(members, "clientSecret"),
    secretExpiresAt: readNumber(members, "secretExpiresAt"),
    authMethod: authMethod as AuthMethod,
    source: source as ClientRecord["source"],
    redirectUri: readOptional(members, "redirectUri"),
    ...(members["clientName"] !== undefined && { clientName: readString(members, "clientName") }),
    ...(members["registeredAt"] !== undefined && { registeredAt: readNumbers(members, "registeredAt") }),
    ...(members["isRefused"] !== undefined && { isRefused: readBoolean(members, "isRefused") }),
  };
}

const client: Reader<ClientRecord> = (members, name) => clientOf(readObject(members, name));
const retired = readNested<NonNullable<Grant["retired"]>>({ at: readCount, reason: readString });
const lostRefresh = readNested<LostRefresh>({ at: readCount, code: readString, generation: readCount });

const GRANT: Readers<Omit<Grant, "lostRefresh">> = {
  acceptedTokenType: readOptional,
  authorizationParams: readOptionalTexts,
  ...readEach(readOptionalBoolean, "needsConsent", "exchanges"),
  ...readEach(readString, "profile", "server"),
  account: readOptional,
  ...readEach(readString, "resource", "issuer"),
  namedIssuer: readOptional,
  endpoints: readNested({
    token: readString,
    ...readEach(readOptional, "introspection", "revocation", "endSession", "jwks"),
  }),
  client,
  requestedScope: readOptional,
  overrides: readStrings,
  proofKey: readSecret,
  tokens: readNested({
    accessToken: readRequiredSecret,
    ...readEach(readSecret, "refreshToken", "idToken"),
    expiresAt: readNumber,
    obtainedAt: readCount,
    scope: readOptional,
  }),
  signedInAt: readCount,
  refusals: readNumbers,
  generation: readCount,
  retired: (members, name) => (members[name] === undefined ? undefined : retired(members, name)),
};
