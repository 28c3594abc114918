/** Why a token was not taken. */
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

/** What a resource server has to tell those who run it. Nothing of it is for the client, and no token is in it. */
export type ResourceServerEvent =
  /** A request was refused: 401, or 403 where scopes are missing. */
  | { type: "refused"; reason: RefusalReason; detail: string }
  /** A token could not be judged: 503. */
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
