import { GRANT_STRATEGIES, type GrantFlag } from "./machine/grant-strategies.js";
import { type Grant, hasExpired } from "./model/grant.js";
import { IDP_ACCOUNT, machineGrantOf } from "./model/machine-grant.js";

/** A stored login as `status` shows it, without secrets. */
export interface LoginStatus {
  /** The profile that it belongs to. */
  profile: string;
  /** The MCP server, canonical. */
  server: string;
  /** The account that the login requested; null if none was named. */
  account: string | null;
  /** How it gets tokens: by a login of the user at the server (`sign-in`) or at an identity provider (`idp`), or by a machine grant. */
  grant: "sign-in" | "idp" | GrantFlag;
  /** The type of its tokens: `DPoP` tokens are bound to a key that is stored with them. */
  token_type: "Bearer" | "DPoP";
  /** The `resource` parameter; `none` if none is sent. */
  resource: string;
  /** The authorization server. */
  issuer: string;
  /** The options that the login was made with and that stay in force for it, such as `acceptTokenType`. */
  exceptions: readonly LoginException[];
  /** The client that the tokens were issued to. */
  client_id: string;
  /** The scopes granted, separated by blanks; null if unknown. */
  scope: string | null;
  /** RFC 3339; null if the issuer did not say. */
  expires_at: string | null;
  /** RFC 3339. */
  signed_in_at: string;
  /** `expired` if the token has expired, or if the issuer rejected the grant (`reason`) and a new login is required. */
  state: "valid" | "expired";
  /** Whether it can be refreshed without a login. */
  refreshable: boolean;
  /** RFC 3339 if the response to the last refresh was lost, so that the token is used until it expires; else null. */
  refresh_lost_at: string | null;
  /** Why the issuer rejected it; null if it did not. */
  reason: string | null;
  /** Where it is stored. */
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
    grant: machine ? GRANT_STRATEGIES[machine].flag : grant.account === IDP_ACCOUNT ? "idp" : "sign-in",
    token_type: grant.proofKey === undefined ? "Bearer" : "DPoP",
    resource: grant.resource,
    issuer: grant.issuer,
    exceptions: exceptionsOf(grant),
    client_id: grant.client.clientId,
    scope: scope ?? null,
    expires_at: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    signed_in_at: new Date(grant.signedInAt).toISOString(),
    state: grant.retired || hasExpired(grant.tokens, now) ? "expired" : "valid",
    // A machine uses its own credential.
    refreshable: (refreshToken !== undefined || machine !== undefined) && !grant.retired,
    refresh_lost_at: grant.lostRefresh === undefined ? null : new Date(grant.lostRefresh.at).toISOString(),
    reason: grant.retired?.reason ?? null,
    stored_in: location,
  };
}

/** An option that a login was made with and that stays in force for its issuer: an exception of this one server. */
export interface LoginException {
  /** The option of `AgentClient`, such as `acceptTokenType`. */
  option: string;
  /** Its value; absent for an option that is only set. */
  value?: string;
}

/** The exceptions that are stored with a login. */
export function exceptionsOf(grant: Grant): LoginException[] {
  const { overrides, acceptedTokenType, authorizationParams = {}, resource, issuer, namedIssuer } = grant;
  const exceptionOf = (option: string) => (option === "resource" ? { option, value: resource } : { option });
  return [
    ...overrides.map(exceptionOf),
    ...(acceptedTokenType === undefined ? [] : [{ option: "acceptTokenType", value: acceptedTokenType }]),
    ...Object.entries(authorizationParams).map(([name, value]) => {
      return { option: "authorizationParams", value: `${name}=${value}` };
    }),
    ...(namedIssuer === undefined ? [] : [{ option: "issuer", value: issuer }]),
  ];
}
