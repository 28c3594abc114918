import type { AgentAuthError } from "../../errors.js";

/**
 * What a stored login is good for: `valid`, its token can be used; `expired`, the next use refreshes it; `lost_refresh`, the
 * answer to its last refresh was lost, so its token is used until it expires and the next refresh may fail; `needs_login`, the
 * issuer refused to refresh it, or its token has expired and nothing can refresh it.
 */
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** The values of {@link ConnectionState}. */
export const CONNECTION_STATES = ["valid", "expired", "needs_login", "lost_refresh"] as const;

/** A stored login without its secrets, as JSON prints it; the times are RFC 3339. */
export interface Connection {
  /** The profile that it belongs to. */
  profile: string;
  /** The MCP server, canonical. */
  server: string;
  /** The account that the login requested; null if none was named. */
  account: string | null;
  /** The authorization server. */
  issuer: string;
  /** Whether its token can be used. */
  state: ConnectionState;
  /** The scopes granted, separated by blanks; null if unknown. */
  scope: string | null;
  /** When the user logged in. */
  logged_in_at: string;
  /** When its token was issued. */
  issued_at: string;
  /** When its token expires; null if the issuer did not say. */
  expires_at: string | null;
  /**
   * The newest refresh or login that a use asked for. A use of a valid token writes nothing, so the last use may be later by
   * as much as a token lives.
   */
  last_used_at: string;
  /** Whether it can be refreshed without a login. */
  refreshable: boolean;
  /** Why the issuer refused to refresh it; null if it did not. */
  reason: string | null;
}

/** Which connections are returned, and in which parts. */
export interface ConnectionQuery {
  /** The profile that the login is stored in. */
  readonly profile?: string | undefined;
  /** The MCP server, canonical. */
  readonly server?: string | undefined;
  /** The issuer identifier, byte for byte. */
  readonly issuer?: string | undefined;
  /** The tenant. Default: that of the store. Stores without an engine have none. */
  readonly tenant?: string | undefined;
  /** Only connections in this state. */
  readonly state?: ConnectionState | undefined;
  /** How many connections a page has at most: 1 to 1,000. Default: 100. */
  readonly limit?: number | undefined;
  /** Begin after the page with this cursor. Default: at the beginning. */
  readonly cursor?: string | undefined;
  /** Called for each login that cannot be read. Default: it is left out. */
  readonly onUnusable?: ((error: AgentAuthError) => void) | undefined;
}

/** A part of the connections. */
export interface ConnectionPage {
  /** At most as many as the limit. A page before the last one may have fewer, or none. */
  items: Connection[];
  /** Where the next page begins; undefined after the last one. */
  cursor: string | undefined;
}
