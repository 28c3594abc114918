import type { BearerChallenge } from "../model/challenge.js";

/** What a token must meet. */
export interface TokenOptions {
  /** Required scopes, separated by blanks. */
  scope?: string | undefined;
  /**
   * Minimum remaining lifetime in seconds, at most nine tenths of its lifetime. Default: 60, or half of its lifetime if
   * that is less.
   */
  minTtl?: number | undefined;
  /** Gets a new token even if the stored one is valid. */
  forceRefresh?: boolean | undefined;
  /** Whether to log in if needed. Default: true if the client has a `login` method. */
  login?: boolean | undefined;
  /** Aborts the call of this caller; shared work continues for others. */
  signal?: AbortSignal | undefined;
}

/** What the grant of a request must meet. */
export interface GrantOptions extends TokenOptions {
  /** The challenge of the response to the request without a token: the server requires a login. */
  challenge?: BearerChallenge | undefined;
}
