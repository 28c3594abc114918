/** Identifies a grant: the login of one profile, and of one account if several are in use, at one MCP server. */
export interface GrantKey {
  /** The profile that the login belongs to. */
  readonly profile: string;
  /** The MCP server, canonical. */
  readonly server: string;
  /** The account that the login requested; undefined if none was named. */
  readonly account?: string | undefined;
}
