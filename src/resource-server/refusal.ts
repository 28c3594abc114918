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

/** The error code of a refused token. */
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
