import type { Clock } from "../http/deadline.js";
import type { Network } from "../http/network.js";
import type { TransportOptions } from "../http/transport.js";
import type { Secret } from "../redact.js";
import type { ResourceServerEvent } from "./events.js";

/** How tokens are introspected (RFC 7662). */
export interface IntrospectionOptions {
  /** The authorization server that introspects. Required where there are several: no other may see the tokens. */
  issuer?: string | undefined;
  /** The client ID of the resource server there; it authenticates with `client_secret_basic`. */
  clientId?: string | undefined;
  /** The client secret. */
  clientSecret?: string | Secret | undefined;
  /** Another authentication, in place of `clientId` and `clientSecret`: adds credentials to the headers or the form. */
  authenticate?: ((request: { headers: Headers; form: URLSearchParams }) => void | Promise<void>) | undefined;
  /** Seconds for which a response is cached, never beyond the expiry of the token; 0 disables the cache. Default 30. */
  cacheTtlSeconds?: number | undefined;
}

/** How a resource server verifies tokens. */
export interface ResourceServerOptions extends Pick<TransportOptions, "fetch" | "random"> {
  /** The address of the protected server, exactly as tokens name it in `aud`: `https://mcp.example/mcp`. */
  resource: string;
  /** The issuers whose tokens are accepted, exactly as tokens name them in `iss`. */
  authorizationServers: readonly string[];
  /** Scopes that every request needs. Default none. */
  requiredScopes?: readonly string[] | undefined;
  /** `scopes_supported` of the metadata. Default `requiredScopes`, where there are any. */
  scopesSupported?: readonly string[] | undefined;
  /** Further members of the metadata (RFC 9728 section 2), such as `resource_name`. */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The accepted values of `aud`: one or several. Default `resource`. */
  audience?: string | readonly string[] | undefined;
  /**
   * The accepted tokens: JWTs, verified locally (RFC 9068); any, by introspection; or both, JWTs verified locally and all
   * others introspected. Default `both` with `introspection`, else `jwt`.
   */
  tokens?: "jwt" | "introspection" | "both" | undefined;
  /** How tokens are introspected. */
  introspection?: IntrospectionOptions | undefined;
  /** Accepted signature algorithms. Default: all that have a public key. */
  algorithms?: readonly string[] | undefined;
  /** `legacy` also accepts JWTs of the type `JWT` and without a type. Default `at+jwt` (RFC 9068). */
  typ?: "at+jwt" | "legacy" | undefined;
  /**
   * Tokens that are bound to a key of their client (RFC 9449): `supported` accepts them with a proof, and others as bearer
   * tokens; `required` accepts no others; `off` accepts none of them. Default `supported`.
   */
  dpop?: "off" | "supported" | "required" | undefined;
  /** Requires a nonce of this server in every proof (RFC 9449 section 9). Default false. */
  dpopNonces?: boolean | undefined;
  /** Seconds that clocks may differ. Default 60. */
  clockSkewSeconds?: number | undefined;
  /** Seconds for which an issuer's keys and metadata are used. Default 600. */
  keyTtlSeconds?: number | undefined;
  /**
   * Seconds for which the signature of a token need not be checked again, at most 60; 0 checks it at each request. All
   * other rules apply to each request, and keys that were read again apply at once. Default 60.
   */
  tokenCacheSeconds?: number | undefined;
  /** Called with the reason when a token is refused or cannot be verified; never with the token. */
  log?: ((event: ResourceServerEvent) => void) | undefined;
  /**
   * Checks the addresses that names resolve to, such as `nodeNetwork()` of `agentauth/node`; it takes the place of
   * `fetch`. Without it an address is checked as it is written.
   */
  network?: Network | undefined;
  /** Allows a public issuer to have its keys on this machine or in a private network. Default false. */
  allowPrivateNetwork?: boolean | undefined;
  /** Milliseconds for each request to an issuer; with a second attempt it may take twice as long. Default 5,000. */
  timeoutMs?: number | undefined;
  /** The name of the program, for `User-Agent`. */
  userAgent?: string | undefined;
  /** The clock. For tests. */
  clock?: Clock | undefined;
}
