import { type Grant, hasExpired } from "../grant/grant.js";
import { GRANT_STRATEGIES, type GrantFlag } from "../machine/grant-strategies.js";
import { machineGrantOf } from "../machine/machine-grant.js";

/** A login as `status` shows it: nothing in it is secret. */
export interface LoginStatus {
  /** The profile that it belongs to. */
  profile: string;
  /** The MCP server, canonical. */
  server: string;
  /** The account that the login was asked for; null when none was named. */
  account: string | null;
  /** How its tokens are obtained: by a login of a user (`sign-in`), or by this machine grant. */
  grant: "sign-in" | GrantFlag;
  /** How its tokens are used: those of type `DPoP` are bound to a key that is kept with them. */
  token_type: "Bearer" | "DPoP";
  /** What is sent as `resource`. */
  resource: string;
  /** The authorization server. */
  issuer: string;
  /** The client that the tokens were given to. */
  client_id: string;
  /** The scopes granted, separated by blanks; null when nothing was said of them. */
  scope: string | null;
  /** RFC 3339; null when the issuer did not say. */
  expires_at: string | null;
  /** RFC 3339. */
  signed_in_at: string;
  /** `over` when the issuer said that the grant has ended. */
  state: "valid" | "expired" | "over";
  /** Whether it can be refreshed without the user. */
  refreshable: boolean;
  /** RFC 3339, where the answer to the last refresh was lost on the way; the token is used until it expires. Else null. */
  refresh_lost_at: string | null;
  /** Why it is over; null when it is not. */
  reason: string | null;
  /** Where the store keeps it. */
  stored_in: string;
}

/** A grant without its secrets. */
export function describeLogin(grant: Grant, now: number, location: string): LoginStatus {
  const { expiresAt, scope, refreshToken } = grant.tokens;
  const machine = machineGrantOf(grant.account);
  return {
    profile: grant.profile,
    server: grant.server,
    account: grant.account ?? null,
    grant: machine === undefined ? "sign-in" : GRANT_STRATEGIES[machine].flag,
    token_type: grant.proofKey === undefined ? "Bearer" : "DPoP",
    resource: grant.resource,
    issuer: grant.issuer,
    client_id: grant.client.clientId,
    scope: scope ?? null,
    expires_at: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    signed_in_at: new Date(grant.signedInAt).toISOString(),
    state: grant.retired ? "over" : hasExpired(grant.tokens, now) ? "expired" : "valid",
    // A machine asks again, with what it was given to ask with.
    refreshable: (refreshToken !== undefined || machine !== undefined) && !grant.retired,
    refresh_lost_at: grant.lostRefresh === undefined ? null : new Date(grant.lostRefresh.at).toISOString(),
    reason: grant.retired?.reason ?? null,
    stored_in: location,
  };
}
