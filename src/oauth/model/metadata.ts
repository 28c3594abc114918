import { parseUrl } from "../../http/address.js";
import type { BearerChallenge } from "./challenge.js";

/** Metadata of an authorization server (RFC 8414 section 2): the fields in use, with every address checked. */
export interface IssuerMetadata {
  /** The issuer identifier (RFC 8414 section 2), as the document has it. */
  issuer: string;
  /** The issuer that the MCP server names, if the user named this one in its place. */
  namedIssuer?: string | undefined;
  /** The token endpoint. */
  tokenEndpoint: string;
  /** Where clients register (RFC 7591). */
  registrationEndpoint: string | undefined;
  /** Where tokens are introspected (RFC 7662). */
  introspectionEndpoint?: string | undefined;
  /** Where tokens are revoked (RFC 7009). */
  revocationEndpoint?: string | undefined;
  /** Where sessions are ended (OpenID Connect RP-Initiated Logout). */
  endSessionEndpoint?: string | undefined;
  /** Where device logins begin (RFC 8628). */
  deviceAuthorizationEndpoint?: string | undefined;
  /** The issuer's keys. */
  jwksUri?: string | undefined;
  /** The scopes that it names. */
  scopesSupported?: readonly string[] | undefined;
  /** The grants that it names. */
  grantTypesSupported?: readonly string[] | undefined;
  /** The profiles of grants that it names (draft-ietf-oauth-identity-assertion-authz-grant section 7). */
  grantProfilesSupported?: readonly string[] | undefined;
  /** How clients may authenticate at the token endpoint. */
  tokenEndpointAuthMethods?: readonly string[] | undefined;
  /** Signing algorithms for client assertions. */
  tokenEndpointSigningAlgorithms?: readonly string[] | undefined;
  /** Signing algorithms for DPoP proofs (RFC 9449 section 5.1). */
  dpopSigningAlgorithms?: readonly string[] | undefined;
  /** Whether it promises `iss` in its authorization responses (RFC 9207). */
  promisesIss: boolean;
  /** Whether a client id may be the address of a client metadata document. */
  takesClientIdDocuments: boolean;
  /** Where the document was found. */
  url: string;
}

/** The metadata of a server that users can log in at. */
export interface ServerMetadata extends IssuerMetadata {
  /** Where the user logs in. */
  authorizationEndpoint: string;
}

/** Metadata of a protected resource (RFC 9728 section 2): the fields in use. */
export interface ResourceMetadata {
  /** Byte for byte what is sent as `resource`. */
  resource: string;
  /** Issuers, in the resource's order. */
  authorizationServers: readonly string[];
  /** The scopes that it names. */
  scopesSupported: readonly string[] | undefined;
  /** Whether it accepts only tokens that are bound to a key (RFC 9449). */
  dpopRequired: boolean;
  /** Where the document was found. */
  url: string;
}

/** The result of discovery. */
export interface Discovered<T extends IssuerMetadata = ServerMetadata> {
  /** The MCP server, canonical. */
  server: string;
  /** The server's challenge to a request without a token. */
  challenge: BearerChallenge | undefined;
  /** The server's metadata; undefined for a server that has none (2025-03-26). */
  resource: ResourceMetadata | undefined;
  /** Whether the server answered a request without a token, so that only an earlier login names the issuer. */
  isUnprotected: boolean;
  /** The metadata of its authorization server. */
  issuer: T;
}

/** The grant type of a token exchange (RFC 8693). */
export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

/** Whether an issuer lists token exchange; undefined if it lists no grant types. */
export function listsExchange({ grantTypesSupported }: IssuerMetadata): boolean | undefined {
  return grantTypesSupported?.includes(TOKEN_EXCHANGE);
}

/** Whether an issuer takes assertions of identity providers (ID-JAG) in place of a login there. */
export function takesIdJag({ grantProfilesSupported }: IssuerMetadata): boolean {
  return grantProfilesSupported?.includes("urn:ietf:params:oauth:grant-profile:id-jag") === true;
}

/**
 * Whether two strings name the same issuer: they are equal, or they differ by nothing but a slash after a host, where
 * the metadata have the same address.
 */
export function isSameIssuer(one: string, other: string): boolean {
  return withoutRoot(one) === withoutRoot(other);
}

function withoutRoot(issuer: string): string {
  return `${parseUrl(issuer)?.origin}/` === issuer ? issuer.slice(0, -1) : issuer;
}
