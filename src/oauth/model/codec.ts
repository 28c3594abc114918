import { isJsonObject } from "../../http/strict-json.js";
import { BOUND_BY, type BoundBy, type ClientBinding } from "./client-binding.js";
import type { AuthMethod, ClientRecord, Grant, LostRefresh } from "./grant.js";
import {
  boolean,
  CodecError,
  count,
  decode,
  each,
  encode,
  type Members,
  nested,
  number,
  numbers,
  object,
  optional,
  type Reader,
  type Readers,
  read,
  requiredSecret,
  revealed,
  secret,
  string,
  strings,
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

const METHODS: readonly string[] = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
const SOURCES: readonly string[] = ["pre-registered", "metadata-document", "dynamic"];

/** A client from its members. @throws CodecError */
export function clientOf(members: Members): ClientRecord {
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
    ...(members["clientName"] !== undefined && { clientName: string(members, "clientName") }),
    ...(members["registeredAt"] !== undefined && { registeredAt: numbers(members, "registeredAt") }),
    ...(members["isRefused"] !== undefined && { isRefused: boolean(members, "isRefused") }),
  };
}

const client: Reader<ClientRecord> = (members, name) => clientOf(object(members, name));
const retired = nested<NonNullable<Grant["retired"]>>({ at: count, reason: string });
const lostRefresh = nested<LostRefresh>({ at: count, code: string, generation: count });

const GRANT: Readers<Omit<Grant, "lostRefresh">> = {
  acceptedTokenType: optional,
  ...each(string, "profile", "server"),
  account: optional,
  ...each(string, "resource", "issuer"),
  namedIssuer: optional,
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
