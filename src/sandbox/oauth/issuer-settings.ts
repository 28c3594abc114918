import { type AgentAuthError, usageError } from "../../errors.js";
import { isScopeToken } from "../../http/oauth-syntax.js";
import { quote } from "../../redact.js";

/** A user who can log in without a password. */
export interface User {
  /** The subject of the tokens. */
  id: string;
  name: string;
  email: string;
}

export const USERS: readonly User[] = [
  { id: "alice", name: "Alice Example", email: "alice@example.com" },
  { id: "bob", name: "Bob Example", email: "bob@example.com" },
  { id: "carol", name: "Carol Example", email: "carol@example.org" },
  { id: "dmitri", name: "Дмитрий Пример", email: "dmitri@example.net" },
];

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

/** How each option of a type is checked, and its default; the compiler finds one that is missing. */
export type OptionReaders<Options> = {
  readonly [Name in keyof Options]-?: (value: Options[Name], name: string) => unknown;
};

/** What the readers of options return. */
export type SettingsOf<Readers> = {
  -readonly [Name in keyof Readers]: Readers[Name] extends (...given: never[]) => infer Setting ? Setting : never;
};

/** Reads an option that is off by default. */
export function readFlag(value: boolean | undefined, name: string): boolean {
  if (value === undefined || typeof value === "boolean") return value ?? false;
  throw invalidOption(name, value, "true or false");
}

/** Reads an option that is a list; undefined if it is not given. */
export function listReader<T>(accepts: (item: T) => boolean, expected: string) {
  return (value: readonly T[] | undefined, name: string): readonly T[] | undefined => {
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw invalidOption(name, value, expected);
    const bad = value.find((item) => !accepts(item));
    if (bad !== undefined) throw invalidOption(name, bad, expected);
    return [...value];
  };
}

/**
 * How {@link OAuthOptions} are read.
 *
 * @internal
 */
export const OAUTH_READERS = {
  metadata: choiceReader("both", ["appended", "rfc8414", "both"]),
  autoApprove: readAccount,
  iss: readFlag,
  deviceFlow: readFlag,
  clientMetadataDocuments: readFlag,
  revocation: readFlag,
  opaque: readFlag,
  accessTokenTtlSeconds: readSeconds(3600, 1),
  refreshReuseGraceSeconds: readSeconds(0, 0),
  requireOfflineAccess: readFlag,
  scopesSupported: listReader(isScope, "a list of scopes"),
  machineGrants: readFlag,
  exchangeAudiences: listReader((item: string) => typeof item === "string", "a list of audiences"),
  dpop: choiceReader("off", ["off", "supported", "required"]),
  dpopNonces: readFlag,
} satisfies OptionReaders<OAuthOptions>;

/** {@link OAuthOptions}, validated and with defaults. `autoApprove` is the account that is logged in at once. */
export type OAuthSettings = SettingsOf<typeof OAUTH_READERS>;

function readAccount(value: boolean | string | undefined): string | undefined {
  if (value === undefined || value === false) return undefined;
  const user = value === true ? USERS[0] : findUser(value);
  if (user) return user.id;
  throw invalidOption("autoApprove", value, `true or one of ${USERS.map(({ id }) => id).join(", ")}`);
}

function choiceReader<T extends string>(preset: T, values: readonly T[]) {
  return (value: T | undefined, name: string): T => {
    if (value === undefined) return preset;
    if (values.includes(value)) return value;
    throw invalidOption(name, value, values.join(", ").replace(/, (\w+)$/, " or $1"));
  };
}

function isScope(item: string): boolean {
  return typeof item === "string" && isScopeToken(item);
}

function readSeconds(preset: number, min: number) {
  return readWholeNumber(preset, min, 315_360_000, "whole seconds");
}

export function readWholeNumber(preset: number, min: number, max: number, kind = "an integer") {
  return (value: number | undefined, name: string): number => {
    if (value === undefined) return preset;
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw invalidOption(name, value, `${kind} from ${min} to ${max}`);
  };
}

export function invalidOption(name: string, value: unknown, expected: string): AgentAuthError {
  // An object of strict JSON has no prototype, and so no text of its own.
  const shown = typeof value === "object" ? JSON.stringify(value) : String(value);
  const message = `sandbox: ${name} must be ${expected}, ${quote(shown)} is not`;
  return usageError(message, `give ${name} as ${expected}`);
}
