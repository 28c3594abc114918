import type { Clock } from "../http/deadline.js";
import type { Network } from "../http/network.js";
import type { TransportOptions } from "../http/transport.js";
import type { Secret } from "../redact.js";
import type { ResourceServerEvent } from "./events.js";

/** How an issuer is asked about tokens (RFC 7662). */
export interface IntrospectionOptions {
  /** Which of the authorization servers is asked. Needed where there are several: no other may see the tokens. */
  issuer?: string | undefined;
  /** What the resource server is called there; it authenticates with `client_secret_basic`. */
  clientId?: string | undefined;
  /** The secret to it. */
  clientSecret?: string | Secret | undefined;
  /** Authenticates in another way, in place of `clientId` and `clientSecret`: puts into headers or form what is needed. */
  authenticate?: ((request: { headers: Headers; form: URLSearchParams }) => void | Promise<void>) | undefined;
  /** Seconds for which an answer is believed, never beyond the end of the token; 0 asks each time. Default 30. */
  cacheTtl?: number | undefined;
}

/** How a resource server judges tokens. */
export interface ResourceServerOptions extends Pick<TransportOptions, "fetch" | "random"> {
  /** The address of the protected server, exactly as tokens name it in `aud`: `https://mcp.example/mcp`. */
  resource: string;
  /** The issuers whose tokens are taken, exactly as tokens name them in `iss`. */
  authorizationServers: readonly string[];
  /** Scopes that every request needs. Default none. */
  requiredScopes?: readonly string[] | undefined;
  /** `scopes_supported` of the metadata. Default `requiredScopes`, where there are any. */
  scopesSupported?: readonly string[] | undefined;
  /** Further members of the metadata (RFC 9728 section 2), such as `resource_name`. */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** What is taken for this server in `aud`: one or several. Default `resource`. */
  audience?: string | readonly string[] | undefined;
  /**
   * Which tokens are taken: JWTs, checked here (RFC 9068); any, of which the issuer is asked each time; or both, JWTs
   * checked here and of all others the issuer asked. Default `both` with `introspection`, else `jwt`.
   */
  tokens?: "jwt" | "introspection" | "both" | undefined;
  /** How the issuer is asked about tokens. */
  introspection?: IntrospectionOptions | undefined;
  /** Signature algorithms that are taken. Default all that have a public key. */
  algorithms?: readonly string[] | undefined;
  /** `legacy` takes JWTs of the type `JWT` and of none as well. Default `at+jwt`, as RFC 9068 has it. */
  typ?: "at+jwt" | "legacy" | undefined;
  /**
   * Tokens that are bound to a key of their client (RFC 9449): `supported` takes them with a proof, and others as bearer
   * tokens; `required` takes no others; `off` takes none of them. Default `supported`.
   */
  dpop?: "off" | "supported" | "required" | undefined;
  /** Wants a nonce of this server in every proof (RFC 9449 section 9). Default false. */
  dpopNonces?: boolean | undefined;
  /** Seconds that clocks may differ. Default 60. */
  clockSkew?: number | undefined;
  /** Seconds for which an issuer's keys and metadata are used. Default 600. */
  keyTtl?: number | undefined;
  /** Hears why a token was not taken, or could not be judged; never the token. */
  log?: ((event: ResourceServerEvent) => void) | undefined;
  /**
   * What judges addresses by where their names lead, such as `nodeNetwork()` of `agentauth/node`; it takes the place of
   * `fetch`. Without it an address is judged by how it is written.
   */
  network?: Network | undefined;
  /** Lets an issuer elsewhere have its keys on this machine or in a private network. Default false. */
  allowPrivateNetwork?: boolean | undefined;
  /** Milliseconds for each request to an issuer; with a second attempt it may take twice as long. Default 5,000. */
  timeoutMs?: number | undefined;
  /** The name of the program, for `User-Agent`. */
  userAgent?: string | undefined;
  /** The clock. For tests. */
  clock?: Clock | undefined;
}
