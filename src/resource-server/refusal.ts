import { AgentAuthError } from "../errors.js";

/** Why a token was refused. */
export type RefusalReason =
  | "missing"
  | "malformed"
  | "too_large"
  | "not_a_jwt"
  | "encrypted"
  | "typ"
  | "algorithm"
  | "critical"
  | "issuer"
  | "key"
  | "signature"
  | "claims"
  | "audience"
  | "expired"
  | "not_yet"
  | "bound"
  | "unbound"
  | "scheme"
  | "proof"
  | "nonce"
  | "replayed"
  | "inactive"
  | "scope";

/** An event for the operators of a resource server. It is not for the client, and holds no token. */
export type ResourceServerEvent =
  /** A request was refused: 401, or 403 where scopes are missing. */
  | { type: "refused"; reason: RefusalReason; detail: string }
  /** A token could not be verified: 503. */
  | { type: "unavailable"; issuer: string; code: string; detail: string };

/** A token that breaks a rule. Its message is for the log alone. */
export class TokenRefusal extends Error {
  override readonly name = "TokenRefusal";
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/**
 * The description of a refused token, by the error of RFC 6750 section 3.1 or RFC 9449 sections 7.1 and 9: the same
 * for every broken rule, which only the log names.
 */
export const REFUSALS = {
  invalid_token: "the access token was not accepted",
  invalid_dpop_proof: "the DPoP proof was not accepted",
  use_dpop_nonce: "the DPoP proof needs the nonce of this answer",
} as const;

export type RefusalCode = keyof typeof REFUSALS;

/** What the client can know itself: that its proof failed, and that its proof needs a nonce. */
const PROOF_ERRORS: Partial<Record<RefusalReason, RefusalCode>> = {
  proof: "invalid_dpop_proof",
  replayed: "invalid_dpop_proof",
  nonce: "use_dpop_nonce",
};

/** The error for a refused token, which does not name the broken rule. */
export function tokenRefusalError(reason: RefusalReason): AgentAuthError {
  const code = PROOF_ERRORS[reason] ?? "invalid_token";
  return new AgentAuthError(code, REFUSALS[code], { class: "auth", status: 401 });
}

/** How a token can be presented: as a bearer token (RFC 6750), or with a proof of its key (RFC 9449). */
export type Scheme = "Bearer" | "DPoP";

export interface Credentials {
  scheme: Scheme;
  token: string;
}

/** Longer than any token that a server issues, and short enough to parse. */
const MAX_TOKEN = 16 * 1024;
const SCHEMES: readonly (readonly [RegExp, Scheme])[] = [
  [/^bearer(?:\s|$)/i, "Bearer"],
  [/^dpop(?:\s|$)/i, "DPoP"],
];
const CREDENTIALS = /^\w+ +([\w\-.~+/]+=*)[ \t]*$/;

/**
 * The token of a request, from its `Authorization` header alone: never from the query or the body (RFC 6750 section 5.3).
 *
 * @param values every `Authorization` header of the request
 * @param acceptedSchemes the accepted schemes
 * @throws TokenRefusal `missing` where there are no such credentials, `malformed` or `too_large` where there is a value
 * that is not one token
 */
export function readCredentials(values: readonly string[], acceptedSchemes: readonly Scheme[]): Credentials {
  const [value, ...more] = values;
  if (value === undefined || value.trim() === "") throw new TokenRefusal("missing", "no Authorization header");
  if (more.length > 0) throw new TokenRefusal("malformed", `${values.length} Authorization headers`);
  if (value.length > MAX_TOKEN + 64) throw tooLarge(value.length);
  const [, scheme] = SCHEMES.find(([pattern]) => pattern.test(value)) ?? [];
  if (!scheme || !acceptedSchemes.includes(scheme))
    throw new TokenRefusal("missing", `another scheme than ${acceptedSchemes.join(" and ")}`);
  if (/^\w+\s*$/.test(value)) throw new TokenRefusal("missing", `${scheme} without a token`);
  const token = CREDENTIALS.exec(value)?.[1];
  if (token === undefined) throw new TokenRefusal("malformed", `no token68 after ${scheme} (RFC 6750 section 2.1)`);
  return { scheme, token };
}

/** Refuses a token that is too long to parse. @throws TokenRefusal `too_large` */
export function checkLength(token: string): void {
  if (token.length > MAX_TOKEN) throw tooLarge(token.length);
}

function tooLarge(length: number): TokenRefusal {
  return new TokenRefusal("too_large", `${length} characters, and at most ${MAX_TOKEN} are looked at`);
}
