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

/** The codes that this package gives, where the service gave none or was never reached. */
export const CLIENT_ERROR_CODES = [
  /** The caller's signal aborted the operation. */
  "aborted",
  /** A bug in this package. */
  "internal_error",
  /** An argument, a flag or a config file is wrong. */
  "usage",
  /** No answer in time. */
  "timeout",
  /** The host name could not be resolved. */
  "dns_failed",
  /** Nothing listens at the address. */
  "connection_refused",
  /** The connection ended before the whole answer was there. */
  "connection_reset",
  /** The TLS handshake or the certificate was not acceptable. */
  "tls_failed",
  /** A proxy refused or broke the connection. */
  "proxy_failed",
  /** The request could not be made for another reason of the network. */
  "network_failed",
  /** HTTP 429, still after the retries. */
  "rate_limited",
  /** HTTP 5xx without a documented body, still after the retries. */
  "server_error",
  /** Any other HTTP failure without a documented body. */
  "http_error",
  /** A redirect that must not be followed. */
  "redirect_refused",
  /** The body is larger than is accepted. */
  "body_too_large",
  /** The body is not of the media type, encoding or character set that was asked for. */
  "bad_content_type",
  /** The body is not the JSON that it says it is. */
  "bad_json",
  /** The JSON is not the envelope that the service documents. */
  "bad_envelope",
  /** A page has no numbers, or they contradict each other or the request. */
  "bad_pagination",
  /** An offset came again, or did not advance. */
  "pagination_loop",
  /** The listing is longer than the page cap that was set. */
  "page_cap",
  /** The listing changed while it was read, and `strict` was set. */
  "list_changed",
  /** The list is not in the requested order, and `strict` was set. */
  "sorting_ignored",
  /** An item is not of the documented shape, and `strict` was set. */
  "unexpected_shape",
  /** Items of a list have no id; all others were delivered. */
  "unusable_items",
  /** The local store cannot be read or written safely, or the output of the command line cannot be written. */
  "store_failed",
  /** jq, which runs `--jq` of the command line, failed by itself: the expression may be right. */
  "jq_failed",
  /** The engine that holds the store does not answer; the same call may succeed later. */
  "store_unavailable",
  /** The engine that holds the store may lose or evict logins, so it is not used. */
  "store_unsafe",
  /** The issuer gave new tokens, and they could not be stored: they are good until this process ends. */
  "grant_not_saved",
  /** An older login was put back into the store: its refresh token is used up, and was not sent. */
  "record_rolled_back",
  /** Another process is at work on the same thing, and did not end in time. */
  "lease_busy",
  /** This process was held up until another one may have taken over its work. */
  "lease_lost",
  /** The user has to log in, and the program did not ask. */
  "login_required",
  /** The MCP server needs its user to open an address first. */
  "user_action_required",
  /** The MCP server answers without a token, so that there is none to get. */
  "login_not_required",
  /** Several accounts are logged in at the server, and none is named. */
  "account_ambiguous",
  /** The server refuses each token as fast as it is renewed. */
  "renewal_storm",
  /** The token lacks scopes that the server wants. */
  "insufficient_scope",
  /** The token was not accepted, for a reason that only the log of the resource server has. */
  "invalid_token",
  /** The key of a token is not among those of its issuer, which must not be read again yet. */
  "unknown_key",
  /** The server wants the request once more, and its body can be sent only once. */
  "body_not_replayable",
  /** An address that a peer gave must not be used. */
  "bad_address",
  /** Scopes that are no scope tokens. */
  "bad_scope",
  /** The MCP server does not say who gives tokens for it. */
  "no_resource_metadata",
  /** The resource metadata breaks a rule of RFC 9728. */
  "bad_resource_metadata",
  /** The resource metadata is of another server. */
  "resource_mismatch",
  /** The authorization server publishes no metadata. */
  "no_server_metadata",
  /** The server metadata breaks a rule of RFC 8414. */
  "bad_server_metadata",
  /** The server metadata is of another issuer. */
  "issuer_mismatch",
  /** The MCP server names another issuer than the one that a credential belongs to. */
  "issuer_changed",
  /** A credential would go to an issuer that only the MCP server names. */
  "issuer_unbound",
  /** The policy of an identity provider allows the user no access to an issuer, so that it issues no assertion for it. */
  "assertion_denied",
  /** An assertion is for others than the issuer that it would be sent to (RFC 7523 section 3). */
  "wrong_audience",
  /** The authorization server does not say that it does PKCE with S256. */
  "pkce_unsupported",
  /** Tokens are to be bound to a key, and the issuer does not say that it can (RFC 9449 section 5.1). */
  "dpop_unsupported",
  /** The authorization server registers no clients by itself. */
  "no_registration",
  /** The authorization server does not take the way in which the client proves itself. */
  "client_auth_unsupported",
  /** The answer to a registration breaks a rule of RFC 7591. */
  "bad_registration",
  /** The authorization server has no device login. */
  "no_device_flow",
  /** The authorization server has no introspection endpoint. */
  "no_introspection",
  /** The callback of a login lacks what it needs, or has it twice. */
  "bad_callback",
  /** A code that cannot be one. */
  "bad_code",
  /** The callback belongs to another login. */
  "state_mismatch",
  /** The callback of a web app came from another browser than the one that the login was started in. */
  "browser_mismatch",
  /** No login waits for the callback of a web app: it was finished already, or has expired. */
  "login_not_found",
  /** The saved login of a web app was changed, or belongs to another user. */
  "bad_saved_login",
  /** The callback names another issuer, or none where one was promised. */
  "iss_mismatch",
  /** The token endpoint's answer breaks a rule of RFC 6749. */
  "bad_token_answer",
  /** The MCP server answered a request with an error. */
  "mcp_failed",
] as const;

/** A code that this package gives, where the service gave none or was never reached. */
export type ClientErrorCode = (typeof CLIENT_ERROR_CODES)[number];

/** The codes of an issuer's answer that a specification defines. */
export const OAUTH_ERROR_CODES = [
  "access_denied",
  "account_selection_required",
  "authorization_pending",
  "consent_required",
  "expired_token",
  "interaction_required",
  "invalid_client",
  "invalid_client_metadata",
  "invalid_dpop_proof",
  "invalid_grant",
  "invalid_redirect_uri",
  "invalid_request",
  "invalid_scope",
  "invalid_target",
  "slow_down",
  "temporarily_unavailable",
  "unauthorized_client",
  "unsupported_grant_type",
  "unsupported_response_type",
  "unsupported_token_type",
  "use_dpop_nonce",
] as const;

/** A code of an issuer's answer that a specification defines (RFC 6749, 7009, 7591, 8628, 8693, 9449 and OpenID Connect). */
export type OAuthErrorCode = (typeof OAUTH_ERROR_CODES)[number];

// A branded string would remain in every branch of a switch; a member of an enum is excluded like any literal.
declare enum OtherCode {
  Unknown = "a code that this version does not know",
}

/**
 * A code that this version does not know, as a newer service or an issuer sent it. Its text is only known when the
 * program runs: compare it as a `string`.
 */
export type OtherErrorCode = OtherCode.Unknown;

/** A code that this version knows. */
export type KnownErrorCode = ServiceErrorCode | ClientErrorCode | OAuthErrorCode;

/** Every code of an error. A `switch` narrows it; what is left after all known codes is {@link OtherErrorCode}. */
export type ErrorCode = KnownErrorCode | OtherErrorCode;
