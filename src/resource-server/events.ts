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
