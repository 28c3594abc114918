import type * as oauth from "oauth4webapi";
import { refusalError } from "../../http/refuse.js";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import type { TraceEntry } from "../http/http.js";

/** The types that have another meaning than "used as a bearer token". */
const OTHER_MEANING: readonly string[] = ["bearer", "dpop", "n_a"];

/** What {@link isAcceptableTokenType} requires, to be read after the name of the option. */
export const TOKEN_TYPE_RULE =
  "must be a name of at most 40 letters, digits, dots, hyphens and underscores, and neither Bearer, DPoP nor N_A";

/** Whether tokens of a type may be used as bearer tokens if the user allows it (RFC 6749 appendix A.13). */
export function isAcceptableTokenType(type: string): boolean {
  return /^[a-z][\w.-]{0,39}$/i.test(type) && !OTHER_MEANING.includes(type.toLowerCase());
}

/** Leaves the check of token types to {@link checkTokenType}, whose error names the option that accepts one. */
export const ANY_TOKEN_TYPE: NonNullable<oauth.ProcessTokenResponseOptions["recognizedTokenTypes"]> = new Proxy(
  {},
  { get: () => () => {} },
);

export interface WantedTokenType {
  tokenEndpoint: string;
  /** Whether they are bound to a key (RFC 9449). */
  isBound: boolean;
  /** A type that is used as a bearer token by the choice of the user. */
  acceptedTokenType: string | undefined;
}

/**
 * Checks the type of a token, which is case-insensitive (RFC 6749 section 5.1). A token that is not bound to the key is
 * not the one requested, and usable by anyone who finds it.
 *
 * @throws `AgentAuthError` `bad_token_answer`
 */
export function checkTokenType(value: string, { tokenEndpoint: from, isBound, acceptedTokenType }: WantedTokenType) {
  const type = value.toLowerCase();
  if (type === (isBound ? "dpop" : "bearer")) return;
  if (!isBound && isAcceptableTokenType(type) && type === acceptedTokenType?.toLowerCase()) return;
  const rule = isBound ? 'must be "DPoP" (RFC 9449 section 5)' : 'must be "Bearer" (RFC 6749 section 5.1)';
  const mayAccept = !isBound && isAcceptableTokenType(type);
  const override = mayAccept ? ({ override: "acceptTokenType", overrideValue: type } as const) : {};
  throw refusalError("bad_token_answer", { field: "token_type", value, from, rule, ...override });
}

/** A parsed JWT whose signature is not verified: that is up to its audience. */
export interface UnverifiedJwt {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
}

/** Reads a JWT without verifying it; undefined if it is not a JWT, such as an opaque token. */
export function readClaims(token: string): UnverifiedJwt | undefined {
  const [first = "", second = "", ...rest] = token.split(".");
  const [header, claims] = [decodePart(first), decodePart(second)];
  return rest.length === 1 && header && claims ? { header, claims } : undefined;
}

function decodePart(part: string): Record<string, unknown> | undefined {
  try {
    const binary = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const value = parseStrictJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The party that an id token must come from and be for. */
export interface IdTokenExpectation {
  issuer: string;
  clientId: string;
  /** The nonce of the authorization request, if it had one. */
  nonce?: string | undefined;
  /** The address of the token endpoint, for the trace. */
  tokenEndpoint: string;
  /** Whether the login is for the sake of the id token, so that one that cannot be used is an error. */
  requiresIdToken?: boolean | undefined;
  trace?: ((entry: TraceEntry) => void) | undefined;
}

/** Far above any real id token. */
const MAX_ID_TOKEN = 64 * 1024;

/**
 * The id token of a token response, if it is of the issuer and for the client; any other is ignored, with an entry in
 * the trace. MCP uses no id token: a valid one is stored only to be sent back to its issuer at a logout. For that
 * neither its times nor its signature matter: it came directly from the issuer (OpenID Connect Core section 3.1.3.7).
 * That of a login at an identity provider is verified by `verifyIdToken` as well.
 *
 * @throws `AgentAuthError` `bad_token_answer` for one that is required
 */
export function usableIdToken(value: unknown, expected: IdTokenExpectation): string | undefined {
  const { trace, tokenEndpoint: url, requiresIdToken } = expected;
  if (value === undefined && !requiresIdToken) return undefined;
  const why = findDefect(value, expected);
  if (why === undefined) return String(value);
  if (requiresIdToken) {
    const rule = `is required for a login at an identity provider${value === undefined ? "" : `, but ${why}`}`;
    throw refusalError("bad_token_answer", { field: "id_token", value: value && "(not shown)", from: url, rule });
  }
  trace?.({ step: "token", method: "POST", url, used: true, why: `the id_token of the response is ignored: ${why}` });
  return undefined;
}

function findDefect(value: unknown, { issuer, clientId, nonce }: IdTokenExpectation): string | undefined {
  const jwt = typeof value === "string" && value.length <= MAX_ID_TOKEN ? readClaims(value) : undefined;
  if (jwt === undefined) return "it is not a signed JWT";
  const { alg } = jwt.header;
  const { iss, aud, azp, sub, nonce: returned } = jwt.claims;
  if (typeof alg !== "string" || alg.toLowerCase() === "none") return "it is not signed";
  if (iss !== issuer) return `its iss is not ${quote(issuer)}`;
  if (![aud].flat().includes(clientId) || (azp !== undefined && azp !== clientId))
    return `it is not for the client ${quote(clientId)}`;
  if (sub !== undefined && typeof sub !== "string") return "its sub is not a text";
  if (nonce !== undefined && returned !== nonce) return "its nonce is not that of the request";
  return undefined;
}
