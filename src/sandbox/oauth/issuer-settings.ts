import { AgentAuthError } from "../../errors.js";
import { isScopeToken } from "../../http/scope-token.js";
import { quote } from "../../redact.js";
import { findPerson, PEOPLE } from "./accounts.js";

/** How the authorization servers and the MCP servers of a sandbox are to be. */
export interface OAuthOptions {
  /**
   * Signs somebody in at the authorization endpoint at once, without pages and cookies: the account's name (`alice`,
   * `bob`, `carol`, `dmitri`), or `true` for the first. A browser is then any program that follows redirects.
   */
  autoApprove?: boolean | string;
  /**
   * Sends and advertises the issuer in authorization responses (RFC 9207). Without it neither is done, since the
   * service does not document it. Default false.
   */
  iss?: boolean;
  /** Offers the device authorization grant (RFC 8628) and advertises its endpoint. Default false. */
  deviceFlow?: boolean;
  /** Offers token revocation (RFC 7009) at `{auth_url}/revoke` and advertises it. Default false. */
  revocation?: boolean;
  /** Issues opaque access tokens instead of JWTs. Default false. */
  opaque?: boolean;
  /** How long an access token lives, in seconds. Default 3600. */
  accessTokenTtl?: number;
  /** How long a refresh token lives, in seconds. Default 2,592,000 (30 days). */
  refreshTokenTtl?: number;
  /** Seconds in which a refresh token that was used may be used again; after them that revokes the grant. Default 0. */
  refreshReuseGrace?: number;
  /**
   * Issues refresh tokens only where the scope `offline_access` was asked for, and lists that scope in the metadata of
   * the authorization servers. Default false: every client that registered the grant gets one.
   */
  requireOfflineAccess?: boolean;
  /** `scopes_supported` in the metadata of the MCP servers. Default: the field is left out. */
  scopesSupported?: readonly string[];
  /**
   * Offers the grants that need no person (client credentials, JWT bearer), to clients that are there from the start, and
   * an identity provider; advertises them with the ways in which clients may prove themselves. Default false.
   */
  machineGrants?: boolean;
  /** For whom tokens can be exchanged (RFC 8693). Default: for anybody. */
  exchangeAudiences?: readonly string[];
  /**
   * Tokens that are bound to a key of their client (RFC 9449): `supported` issues them to whoever sends a proof, `required`
   * to nobody else, and the MCP servers take them so. Default `off`: nothing is said of them.
   */
  dpop?: "off" | "supported" | "required";
  /** Wants nonces in every proof, of the authorization servers and of the MCP servers. Default false. */
  dpopNonces?: boolean;
}

/** {@link OAuthOptions}, checked and filled in. */
export interface OAuthSettings {
  /** The account that is signed in at once. */
  autoApprove: string | undefined;
  iss: boolean;
  deviceFlow: boolean;
  revocation: boolean;
  opaque: boolean;
  accessTokenTtl: number;
  refreshTokenTtl: number;
  refreshReuseGrace: number;
  requireOfflineAccess: boolean;
  scopesSupported: readonly string[] | undefined;
  machineGrants: boolean;
  exchangeAudiences: readonly string[] | undefined;
  dpop: "off" | "supported" | "required";
  dpopNonces: boolean;
}

const MAX_SECONDS = 315_360_000;

/** Checks the options and fills in what is not given. @throws AgentAuthError `usage` */
export function readOAuthSettings(options: OAuthOptions): OAuthSettings {
  const { iss, deviceFlow, revocation, opaque, requireOfflineAccess, machineGrants, exchangeAudiences } = options;
  return {
    autoApprove: readAccount(options.autoApprove),
    iss: iss ?? false,
    deviceFlow: deviceFlow ?? false,
    revocation: revocation ?? false,
    opaque: opaque ?? false,
    accessTokenTtl: seconds("accessTokenTtl", options.accessTokenTtl, 3600, 1),
    refreshTokenTtl: seconds("refreshTokenTtl", options.refreshTokenTtl, 2_592_000, 1),
    refreshReuseGrace: seconds("refreshReuseGrace", options.refreshReuseGrace, 0, 0),
    requireOfflineAccess: requireOfflineAccess ?? false,
    scopesSupported: readScopes(options.scopesSupported),
    machineGrants: machineGrants ?? false,
    exchangeAudiences: exchangeAudiences && [...exchangeAudiences],
    dpop: readDpop(options),
    dpopNonces: options.dpopNonces ?? false,
  };
}

function readAccount(value: boolean | string | undefined): string | undefined {
  if (value === undefined || value === false) return undefined;
  const person = value === true ? PEOPLE[0] : findPerson(value);
  if (person) return person.id;
  throw wrong("autoApprove", value, `true or one of ${PEOPLE.map(({ id }) => id).join(", ")}`);
}

function readDpop({ dpop = "off", dpopNonces }: OAuthOptions): OAuthSettings["dpop"] {
  if (!["off", "supported", "required"].includes(dpop)) throw wrong("dpop", dpop, "off, supported or required");
  if (dpop === "off" && dpopNonces) throw wrong("dpop", dpop, "supported or required where dpopNonces is set");
  return dpop;
}

function readScopes(value: readonly string[] | undefined): readonly string[] | undefined {
  const bad = value?.find((scope) => !isScopeToken(scope));
  if (bad !== undefined) throw wrong("scopesSupported", bad, "a list of scopes");
  return value && [...value];
}

function seconds(name: string, value: number | undefined, preset: number, min: number): number {
  if (value === undefined) return preset;
  if (Number.isInteger(value) && value >= min && value <= MAX_SECONDS) return value;
  throw wrong(name, value, `whole seconds from ${min} to ${MAX_SECONDS}`);
}

function wrong(name: string, value: unknown, expected: string): AgentAuthError {
  const message = `sandbox: ${name} must be ${expected}, ${quote(String(value))} is not`;
  return new AgentAuthError("usage", message, { class: "usage", hint: `give ${name} as ${expected}` });
}
