import { type AgentAuthError, usageError } from "../../errors.js";
import { isScopeToken } from "../../http/oauth-syntax.js";
import type { OptionNames } from "../../http/public-class.js";
import { quote } from "../../redact.js";

/** A user who can log in without a password. */
export interface User {
  /** The subject of the tokens. */
  id: string;
  name: string;
  email: string;
}

/** All users. */
export const USERS: readonly User[] = [
  { id: "alice", name: "Alice Example", email: "alice@example.com" },
  { id: "bob", name: "Bob Example", email: "bob@example.com" },
  { id: "carol", name: "Carol Example", email: "carol@example.org" },
  { id: "dmitri", name: "Дмитрий Пример", email: "dmitri@example.net" },
];

/** The user with an id. */
export function findUser(id: string): User | undefined {
  return USERS.find((user) => user.id === id);
}

/** The options of the authorization servers and the MCP servers of a sandbox. */
export interface OAuthOptions {
  /**
   * Where the metadata of the authorization servers lies: `appended` to the issuer, as the service has it, between host
   * and path as RFC 8414 has it, or at both addresses. Default `both`.
   */
  metadata?: "appended" | "rfc8414" | "both";
  /**
   * Log a user in at the authorization endpoint at once, without pages and cookies: the user's id (`alice`, `bob`,
   * `carol`, `dmitri`), or `true` for the first. Any program that follows redirects then works as the browser.
   */
  autoApprove?: boolean | string;
  /**
   * Send and advertise the issuer in authorization responses (RFC 9207). The service does not document it. Default
   * false.
   */
  iss?: boolean;
  /** Offer the device authorization grant (RFC 8628) and advertise its endpoint. Default false. */
  deviceFlow?: boolean;
  /**
   * Accept the HTTPS address of a client's metadata document as its `client_id`, without registration, and advertise
   * it. The sandbox then fetches the documents that clients name. Default false.
   */
  clientMetadataDocuments?: boolean;
  /** Offer token revocation (RFC 7009) at `{auth_url}/revoke` and advertise it. Default false. */
  revocation?: boolean;
  /** Issue opaque access tokens instead of JWTs. Default false. */
  opaque?: boolean;
  /** Lifetime of access tokens in seconds. Default 3600. */
  accessTokenTtlSeconds?: number;
  /** Lifetime of refresh tokens in seconds. Default 2,592,000 (30 days). */
  refreshTokenTtlSeconds?: number;
  /** Seconds in which a used refresh token still works; later reuse revokes the grant. Default 0. */
  refreshReuseGraceSeconds?: number;
  /**
   * Issue refresh tokens only where the scope `offline_access` was requested, and list that scope in the metadata of
   * the authorization servers. Default false: every client that registered the grant type gets one.
   */
  requireOfflineAccess?: boolean;
  /** `scopes_supported` in the metadata of the MCP servers. Default: the field is left out. */
  scopesSupported?: readonly string[];
  /**
   * Offer the machine grants (client credentials, JWT bearer) to pre-registered clients, and an identity provider;
   * advertise the grants and the client authentication methods. Default false.
   */
  machineGrants?: boolean;
  /** The audiences that token exchange allows (RFC 8693). Default: every audience. */
  exchangeAudiences?: readonly string[];
  /**
   * DPoP-bound tokens (RFC 9449): `supported` issues them to clients that send a proof, `required` rejects requests
   * without one; the MCP servers accept them accordingly. Default `off`: DPoP is neither supported nor advertised.
   */
  dpop?: "off" | "supported" | "required";
  /** Require nonces in DPoP proofs, at the authorization servers and the MCP servers. Default false. */
  dpopNonces?: boolean;
}

/** {@link OAuthOptions}, validated and with defaults. */
export interface OAuthSettings
  extends Required<Omit<OAuthOptions, "autoApprove" | "scopesSupported" | "exchangeAudiences">> {
  /** The account that is logged in at once. */
  autoApprove: string | undefined;
  scopesSupported: readonly string[] | undefined;
  exchangeAudiences: readonly string[] | undefined;
}

/**
 * The names of {@link OAuthOptions}.
 *
 * @internal
 */
export const OAUTH_OPTIONS: OptionNames<OAuthOptions> = {
  metadata: true,
  autoApprove: true,
  iss: true,
  deviceFlow: true,
  clientMetadataDocuments: true,
  revocation: true,
  opaque: true,
  accessTokenTtlSeconds: true,
  refreshTokenTtlSeconds: true,
  refreshReuseGraceSeconds: true,
  requireOfflineAccess: true,
  scopesSupported: true,
  machineGrants: true,
  exchangeAudiences: true,
  dpop: true,
  dpopNonces: true,
};

const MAX_SECONDS = 315_360_000;

/** Validates the options and applies the defaults. @throws AgentAuthError `usage` */
export function readOAuthSettings(options: OAuthOptions): OAuthSettings {
  const { iss = false, deviceFlow = false, revocation = false, opaque = false, dpopNonces = false } = options;
  const { requireOfflineAccess = false, machineGrants = false, clientMetadataDocuments = false } = options;
  const { exchangeAudiences } = options;
  return {
    metadata: readOneOf("metadata", options.metadata ?? "both", ["appended", "rfc8414", "both"]),
    autoApprove: readAccount(options.autoApprove),
    iss,
    deviceFlow,
    clientMetadataDocuments,
    revocation,
    opaque,
    accessTokenTtlSeconds: readSeconds("accessTokenTtlSeconds", options.accessTokenTtlSeconds, 3600, 1),
    refreshTokenTtlSeconds: readSeconds("refreshTokenTtlSeconds", options.refreshTokenTtlSeconds, 2_592_000, 1),
    refreshReuseGraceSeconds: readSeconds("refreshReuseGraceSeconds", options.refreshReuseGraceSeconds, 0, 0),
    requireOfflineAccess,
    scopesSupported: readScopes(options.scopesSupported),
    machineGrants,
    exchangeAudiences: exchangeAudiences && [...exchangeAudiences],
    dpop: readDpop(options),
    dpopNonces,
  };
}

function readAccount(value: boolean | string | undefined): string | undefined {
  if (value === undefined || value === false) return undefined;
  const user = value === true ? USERS[0] : findUser(value);
  if (user) return user.id;
  throw invalidOption("autoApprove", value, `true or one of ${USERS.map(({ id }) => id).join(", ")}`);
}

function readDpop({ dpop = "off", dpopNonces }: OAuthOptions): OAuthSettings["dpop"] {
  if (dpop === "off" && dpopNonces) throw invalidOption("dpop", dpop, "supported or required where dpopNonces is set");
  return readOneOf("dpop", dpop, ["off", "supported", "required"]);
}

function readOneOf<T extends string>(name: string, value: T, values: readonly T[]): T {
  if (values.includes(value)) return value;
  throw invalidOption(name, value, values.join(", ").replace(/, (\w+)$/, " or $1"));
}

function readScopes(value: readonly string[] | undefined): readonly string[] | undefined {
  const bad = value?.find((scope) => !isScopeToken(scope));
  if (bad !== undefined) throw invalidOption("scopesSupported", bad, "a list of scopes");
  return value && [...value];
}

function readSeconds(name: string, value: number | undefined, preset: number, min: number): number {
  return readWholeNumber(name, value, preset, min, MAX_SECONDS, "whole seconds");
}

/** A whole number in a range, or its default. @throws AgentAuthError `usage` */
export function readWholeNumber(
  name: string,
  value: number | undefined,
  preset: number,
  min: number,
  max: number,
  kind = "an integer",
): number {
  if (value === undefined) return preset;
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalidOption(name, value, `${kind} from ${min} to ${max}`);
}

/** The error for an invalid option. */
export function invalidOption(name: string, value: unknown, expected: string): AgentAuthError {
  const message = `sandbox: ${name} must be ${expected}, ${quote(String(value))} is not`;
  return usageError(message, `give ${name} as ${expected}`);
}
