import type { BearerChallenge } from "./challenge.js";

/** What an authorization server says of itself (RFC 8414 section 2), as far as it is used, every address checked. */
export interface IssuerMetadata {
  /** The issuer identifier (RFC 8414 section 2). */
  issuer: string;
  /** Where tokens are asked for. */
  tokenEndpoint: string;
  /** Where clients register (RFC 7591). */
  registrationEndpoint: string | undefined;
  /** Where tokens are introspected (RFC 7662). */
  introspectionEndpoint: string | undefined;
  /** Where tokens are revoked (RFC 7009). */
  revocationEndpoint: string | undefined;
  /** Where sessions are ended (OpenID Connect RP-Initiated Logout). */
  endSessionEndpoint: string | undefined;
  /** Where device logins begin (RFC 8628). */
  deviceAuthorizationEndpoint: string | undefined;
  /** The issuer's keys. */
  jwksUri: string | undefined;
  /** The scopes that it names. */
  scopesSupported: readonly string[] | undefined;
  /** The grants that it names. */
  grantTypesSupported: readonly string[] | undefined;
  /** How clients may prove themselves at the token endpoint. */
  tokenEndpointAuthMethods: readonly string[] | undefined;
  /** What clients may sign the assertions with that they prove themselves by. */
  tokenEndpointSigningAlgorithms?: readonly string[] | undefined;
  /** What proofs may be signed with that tokens are bound to a key by (RFC 9449 section 5.1). */
  dpopSigningAlgorithms?: readonly string[] | undefined;
  /** Whether it promises `iss` in its authorization responses (RFC 9207). */
  promisesIss: boolean;
  /** Whether client ids may be addresses of client metadata documents. */
  takesClientIdDocuments: boolean;
  /** Where the document was found. */
  url: string;
}

/** The metadata of a server at which the user can log in. */
export interface ServerMetadata extends IssuerMetadata {
  /** Where the user logs in. */
  authorizationEndpoint: string;
}

/** What a protected resource says of itself (RFC 9728 section 2), as far as it is used. */
export interface ResourceMetadata {
  /** Byte for byte what is sent as `resource`. */
  resource: string;
  /** Issuers, in the resource's order. */
  authorizationServers: readonly string[];
  /** The scopes that it names. */
  scopesSupported: readonly string[] | undefined;
  /** Whether it takes no tokens but those that are bound to a key (RFC 9449). */
  dpopRequired: boolean;
  /** Where the document was found. */
  url: string;
}

/** What was found out about a protected server. */
export interface Discovered<T extends IssuerMetadata = ServerMetadata> {
  /** The MCP server, canonical. */
  server: string;
  /** What the server answered to a request without a token. */
  challenge: BearerChallenge | undefined;
  /** The server's metadata; undefined for a server that has none (2025-03-26). */
  resource: ResourceMetadata | undefined;
  /** The metadata of its authorization server. */
  issuer: T;
}
