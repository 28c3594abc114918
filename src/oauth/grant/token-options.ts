/** What a token must be good for. */
export interface TokenOptions {
  /** Scopes that it must have, separated by blanks. */
  scope?: string | undefined;
  /** Seconds that it must still live, at most nine tenths of its life. Default: 60, or half of its life. */
  minTtl?: number | undefined;
  /** Gets a new token even if the one at hand is good. */
  forceRefresh?: boolean | undefined;
  /** Whether the user may be asked to log in. Default: whether the client has a way to. */
  login?: boolean | undefined;
  /** Ends the waiting of this caller. */
  signal?: AbortSignal | undefined;
}
