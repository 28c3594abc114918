/**
 * The one error class of this package, and the union of its codes.
 *
 * This module imports nothing, so that every layer can throw and read the same error.
 */

/** The twelve codes of the management interface's error body (`service.md`, Errors). */
export const SERVICE_ERROR_CODES = [
  "bad_request",
  "bad_authtoken",
  "not_authenticated",
  "not_permitted",
  "not_implemented",
  "unknown",
  "not_found",
  "unexpected_ref_type",
  "unexpected",
  "invalid_action",
  "invalid_value",
  "required_value",
] as const;

/** A code that the service documents for its error body. */
export type ServiceErrorCode = (typeof SERVICE_ERROR_CODES)[number];

/** A code that this package gives, where the service gave none or was never reached. */
export type ClientErrorCode =
  /** The caller's signal aborted the operation. */
  | "aborted"
  /** A bug in this package. */
  | "internal_error"
  /** An argument, a flag or a config file is wrong. */
  | "usage"
  /** No answer in time. */
  | "timeout"
  /** The host name could not be resolved. */
  | "dns_failed"
  /** Nothing listens at the address. */
  | "connection_refused"
  /** The connection ended before the whole answer was there. */
  | "connection_reset"
  /** The TLS handshake or the certificate was not acceptable. */
  | "tls_failed"
  /** A proxy refused or broke the connection. */
  | "proxy_failed"
  /** The request could not be made for another reason of the network. */
  | "network_failed"
  /** HTTP 429, still after the retries. */
  | "rate_limited"
  /** HTTP 5xx without a documented body, still after the retries. */
  | "server_error"
  /** Any other HTTP failure without a documented body. */
  | "http_error"
  /** A redirect that must not be followed. */
  | "redirect_refused"
  /** The body is larger than is accepted. */
  | "body_too_large"
  /** The body is not of the media type, encoding or character set that was asked for. */
  | "bad_content_type"
  /** The body is not the JSON that it says it is. */
  | "bad_json"
  /** The JSON is not the envelope that the service documents. */
  | "bad_envelope"
  /** A page has no numbers, or they contradict each other or the request. */
  | "bad_pagination"
  /** An offset came again, or did not advance. */
  | "pagination_loop"
  /** The listing is longer than the page cap that was set. */
  | "page_cap"
  /** The listing changed while it was read, and `strict` was asked for. */
  | "list_changed"
  /** An item is not of the documented shape, and `strict` was asked for. */
  | "unexpected_shape"
  /** The local store cannot be read or written safely. */
  | "store_failed"
  /** The issuer gave new tokens, and they could not be stored: they are good until this process ends. */
  | "grant_not_saved"
  /** Another process is at work on the same thing, and did not end in time. */
  | "lease_busy"
  /** This process was held up until another one may have taken over its work. */
  | "lease_lost"
  /** The user has to log in, and the program did not ask. */
  | "login_required"
  /** Several accounts are signed in at the server, and none is named. */
  | "account_ambiguous"
  /** The server refuses each token as fast as it is renewed. */
  | "renewal_storm"
  /** The token lacks scopes that the server wants. */
  | "insufficient_scope"
  /** The token was not accepted, for a reason that only the log of the resource server has. */
  | "invalid_token"
  /** The key of a token is not among those of its issuer, which must not be read again yet. */
  | "unknown_key"
  /** The server wants the request once more, and its body can be sent only once. */
  | "body_not_replayable"
  /** An address that a peer gave must not be used. */
  | "bad_address"
  /** Scopes that are no scope tokens. */
  | "bad_scope"
  /** The MCP server does not say who gives tokens for it. */
  | "no_resource_metadata"
  /** The resource metadata breaks a rule of RFC 9728. */
  | "bad_resource_metadata"
  /** The resource metadata is of another server. */
  | "resource_mismatch"
  /** The authorization server publishes no metadata. */
  | "no_server_metadata"
  /** The server metadata breaks a rule of RFC 8414. */
  | "bad_server_metadata"
  /** The server metadata is of another issuer. */
  | "issuer_mismatch"
  /** The MCP server names another issuer than the one that a credential belongs to. */
  | "issuer_changed"
  /** A credential would go to an issuer that only the MCP server names. */
  | "issuer_unbound"
  /** An assertion is for others than the issuer that it would be sent to (RFC 7523 section 3). */
  | "wrong_audience"
  /** The authorization server does not say that it does PKCE with S256. */
  | "pkce_unsupported"
  /** Tokens are to be bound to a key, and the issuer does not say that it can (RFC 9449 section 5.1). */
  | "dpop_unsupported"
  /** The authorization server registers no clients by itself. */
  | "no_registration"
  /** The authorization server does not take the way in which the client proves itself. */
  | "client_auth_unsupported"
  /** The answer to a registration breaks a rule of RFC 7591. */
  | "bad_registration"
  /** The authorization server has no device login. */
  | "no_device_flow"
  /** The authorization server has no introspection endpoint. */
  | "no_introspection"
  /** The callback of a sign-in lacks what it needs, or has it twice. */
  | "bad_callback"
  /** A code that cannot be one. */
  | "bad_code"
  /** The callback belongs to another sign-in. */
  | "state_mismatch"
  /** The callback names another issuer, or none where one was promised. */
  | "iss_mismatch"
  /** The token endpoint's answer breaks a rule of RFC 6749. */
  | "bad_token_answer"
  /** The MCP server answered a request with an error. */
  | "mcp_failed";

/** Every code this package knows; a code that a newer service sends passes through as it is. */
export type ErrorCode = ServiceErrorCode | ClientErrorCode | (string & {});

/**
 * What kind of failure it is, which also decides the CLI's exit code: `internal` 1, `usage` 2, `refused` 3, `auth` 4,
 * `unavailable` 5, `remote` 6, `partial` 7, `store` 8, `aborted` 130.
 */
export type ErrorClass =
  | "internal"
  | "usage"
  | "refused"
  | "auth"
  | "unavailable"
  | "remote"
  | "partial"
  | "store"
  | "aborted";

/** An option that disables or relaxes the check that failed. */
export type PolicyOption =
  | "allowCrossOriginEndpoints"
  | "allowCrossOriginMetadata"
  | "allowMissingPkceMetadata"
  | "allowNonLoopback"
  | "allowPrivateNetwork"
  | "dpop"
  | "legacyDiscovery";

/** An option of the SDK, or a part of one, that a remedy names. */
export type ConfigureOption =
  | "account"
  | "apiToken"
  | "assertion"
  | "browser"
  | "ca"
  | "clientCertificate"
  | "clientId"
  | "clientSecret"
  | "flow"
  | "idToken"
  | "idpTokenEndpoint"
  | "issuer"
  | "maxPages"
  | "pageSize"
  | "privateKey"
  | "redirectPort"
  | "resource"
  | "scope";

/** Log in at a server. */
export interface LoginRemedy {
  /** The kind of remedy. */
  action: "login";
  /** The MCP server. */
  server: string;
  /** The profile that the login is stored in. Default: `default`. */
  profile?: string | undefined;
  /** The account at the server. */
  account?: string | undefined;
  /** Scopes to request, separated by blanks. A server may have named them. */
  scope?: string | undefined;
  /** Whether the tokens are to be bound to a key. Default: `auto`. */
  dpop?: "off" | "auto" | "required" | undefined;
  /** An option to set as well. */
  option?: "clientId" | "loginTimeoutMs" | "scope" | undefined;
}

/** Set or correct an option. */
export interface ConfigureRemedy {
  /** The kind of remedy. */
  action: "configure";
  /** The option. */
  option: ConfigureOption;
  /** The value that the option has or needs; never a secret. */
  value?: string | undefined;
  /** Another option that helps instead, or that can be wrong too. */
  also?: "idp" | "privateKey" | undefined;
  /** The client that the option belongs to. */
  clientId?: string | undefined;
  /** The profile that the option belongs to. Default: `default`. */
  profile?: string | undefined;
}

/** What to do about an error, as data: an application can show a button for it, a command line a command. */
export type Remedy =
  | LoginRemedy
  | ConfigureRemedy
  /** Disable a check, for a server that the user trusts. */
  | { action: "allow"; option: PolicyOption }
  /** Get a token with a machine grant, without a login. */
  | { action: "token"; grant?: string | undefined }
  /** Find out more: run discovery, read the grants that the issuer names, check the clock, or list the stored logins. */
  | { action: "inspect"; subject: "clock" | "discovery" | "grants" | "logins" }
  /** Call again later. */
  | { action: "retry" }
  /** Read the listing from this offset. */
  | { action: "resume"; offset: number };

/** What an {@link AgentAuthError} can carry beside its code and message. */
export interface AgentAuthErrorOptions {
  /** The kind of failure. */
  class: ErrorClass;
  /** The HTTP status, where there was an answer. */
  status?: number | undefined;
  /** The request id that the service sent, if any. */
  requestId?: string | undefined;
  /** Whether the same call may succeed later. Default: only for `unavailable`. */
  retryable?: boolean | undefined;
  /** The offset of the first item that a listing did not yield. */
  resume?: number | undefined;
  /** Seconds that the server asked to wait before it is asked again. */
  retryAfter?: number | undefined;
  /** The address asked, without credentials. */
  url?: string | undefined;
  /** What to do about it, in words; an option has the name that it has in the SDK. */
  hint?: string | undefined;
  /** What to do about it, as data. */
  remedy?: Remedy | undefined;
  /** The answer as it came; its body has been read. */
  response?: Response | undefined;
  /** What led to it. */
  cause?: unknown;
}

/** What to do about an error, in words and as data. */
export type Advice = Pick<AgentAuthErrorOptions, "hint" | "remedy">;

/** The JSON form of an error: absent fields are left out, and nothing in it is secret. */
export interface AgentAuthErrorJson {
  /** The exact failure. */
  code: ErrorCode;
  /** What kind of failure it is; the CLI's exit code follows from it. */
  class: ErrorClass;
  /** What happened. */
  message: string;
  /** What helps, where something is known to. */
  hint?: string;
  /** What helps, as data. */
  remedy?: Remedy;
  /** Whether the same call can succeed later. */
  retryable: boolean;
  /** The HTTP status, where there was an answer. */
  status?: number;
  /** The request id that the service sent. */
  request_id?: string;
  /** The address asked, without credentials. */
  url?: string;
  /** The offset of the first item that a listing did not yield. */
  resume?: number;
  /** Seconds that the server asked to wait before it is asked again. */
  retry_after?: number;
}

const BRAND = Symbol.for("agentauth.error");

/**
 * The only error that this package throws, apart from `TypeError` for an argument that a program got wrong.
 *
 * Switch on {@link AgentAuthError.code} for the exact failure or on {@link AgentAuthError.class} for its kind. Use
 * {@link isAgentAuthError} rather than `instanceof`, which fails between two copies of the package.
 */
export class AgentAuthError extends Error {
  /** Tells it from other errors in traces; to tell it in code use {@link isAgentAuthError}. */
  override readonly name = "AgentAuthError";
  /** The exact failure. */
  readonly code: ErrorCode;
  /** The kind of failure. */
  readonly class: ErrorClass;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** What to do about it, in words. */
  declare readonly hint?: string;
  /** What to do about it, as data. */
  declare readonly remedy?: Remedy;
  /** The HTTP status, where there was an answer. */
  declare readonly status?: number;
  /** The request id that the service sent. */
  declare readonly requestId?: string;
  /** The address asked, without credentials. */
  declare readonly url?: string;
  /** The offset of the first item that a listing did not yield. */
  declare readonly resume?: number;
  /** Seconds that the server asked to wait before it is asked again. */
  declare readonly retryAfter?: number;
  /** The answer as it came, not enumerable. */
  declare readonly response?: Response;

  constructor(code: ErrorCode, message: string, options: AgentAuthErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.class = options.class;
    this.retryable = options.retryable ?? options.class === "unavailable";
    for (const key of ["hint", "remedy", "status", "requestId", "url", "resume", "retryAfter"] as const) {
      const value = options[key];
      if (value !== undefined) Object.defineProperty(this, key, { value, enumerable: true });
    }
    if (options.response !== undefined) Object.defineProperty(this, "response", { value: options.response });
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** The error as plain data, for logs and for programs. */
  toJSON(): AgentAuthErrorJson {
    return {
      code: this.code,
      class: this.class,
      message: this.message,
      ...(this.hint !== undefined && { hint: this.hint }),
      ...(this.remedy !== undefined && { remedy: this.remedy }),
      retryable: this.retryable,
      ...(this.status !== undefined && { status: this.status }),
      ...(this.requestId !== undefined && { request_id: this.requestId }),
      ...(this.url !== undefined && { url: this.url }),
      ...(this.resume !== undefined && { resume: this.resume }),
      ...(this.retryAfter !== undefined && { retry_after: this.retryAfter }),
    };
  }
}

/** Whether a value is an {@link AgentAuthError}, also one of another copy of this package. */
export function isAgentAuthError(value: unknown): value is AgentAuthError {
  return typeof value === "object" && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
}

/** The error for a signal that fired; a signal whose reason is one of our errors gives that error. */
export function abortedError(signal: AbortSignal): AgentAuthError {
  if (isAgentAuthError(signal.reason)) return signal.reason;
  return new AgentAuthError("aborted", "the operation was aborted", { class: "aborted", cause: signal.reason });
}

/** The same error with another hint, and with this remedy or none. */
export function withHint(error: AgentAuthError, hint: string | undefined, remedy?: Remedy): AgentAuthError {
  const { status, requestId, url, resume, retryAfter, retryable, response, cause, stack } = error;
  const answer = { status, requestId, url, resume, retryAfter, retryable, response };
  const copy = new AgentAuthError(error.code, error.message, { class: error.class, cause, hint, remedy, ...answer });
  // What is to be found is where the error came from, not where its hint was put on.
  if (stack !== undefined) copy.stack = stack;
  return copy;
}
