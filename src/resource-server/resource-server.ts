import { buildMetadata, type ResourceMetadataDocument } from "./challenge.js";
import type { VerifiedToken } from "./claims.js";
import { Dpop } from "./dpop.js";
import { httpIssuer, type Issuer } from "./issuer.js";
import type {
  HonoMiddleware,
  NodeMiddleware,
  NodeRequest,
  ProtectedHandler,
  Scopes,
  VerifyOptions,
} from "./middleware.js";
import { createAuthenticator, createHono, createMiddleware, createProtected, metadataResponse } from "./middleware.js";
import type { ResourceServerOptions, ResourceServerSettings } from "./options.js";
import { checkAddresses, readResourceServerSettings } from "./options.js";
import { createTokenVerifier } from "./verifier.js";

/** Protects one server: an MCP server, or any other that accepts bearer tokens. */
export interface ResourceServer {
  /**
   * Verifies a token.
   *
   * @throws `AgentAuthError` `not_authenticated` where there is no token: the response names no error (RFC 6750 section 3.1);
   * `invalid_token`, `invalid_dpop_proof` or `use_dpop_nonce` (all of class `auth`, status 401); `insufficient_scope` (class
   * `auth`, status 403), or one of class `unavailable` (status 503) where the token could not be verified
   */
  verify(token: string, options?: VerifyOptions): Promise<VerifiedToken>;
  /**
   * A fetch-style handler that calls `handler` only for requests with a valid token. It answers 401, 403 and 503 itself,
   * and requests for the metadata.
   *
   * @param options `scopes` that a request needs beside `requiredScopes`: a list, or a function that returns them for a
   * request with a valid token; it must read a body from `request.clone()`
   */
  protect(handler: ProtectedHandler, options?: { scopes?: Scopes<Request> }): (request: Request) => Promise<Response>;
  /** The same for Express, Connect and Node's `http`; the token is in `request.auth`, where the MCP SDK reads it. */
  middleware<R extends NodeRequest = NodeRequest>(options?: { scopes?: Scopes<R> }): NodeMiddleware<R>;
  /** The same for Hono; `auth` of the context is the MCP SDK's `AuthInfo`, and `verified` the token. */
  hono(options?: { scopes?: Scopes<Request> }): HonoMiddleware;
  /** The metadata document (RFC 9728 section 2). */
  metadata(): ResourceMetadataDocument;
  /** The path of the metadata document: the well-known segment before the path of the resource. */
  readonly metadataPath: string;
  /** The response to a request for the metadata; undefined for any other. For servers that protect only some paths. */
  handleMetadata(request: Request): Response | undefined;
  /** The nonce that proofs need from now on, for a `use_dpop_nonce` response; undefined without `dpopNonces`. */
  dpopNonce(): Promise<string | undefined>;
}

/**
 * Creates a resource server. It reads the keys and metadata of the issuers when the first token arrives.
 *
 * @throws `TypeError` for an option that is wrong
 * @example
 * const server = createResourceServer({
 *   resource: "https://mcp.example/mcp",
 *   authorizationServers: ["https://auth.example/pool_1"],
 * });
 * export default { fetch: server.protect((request, { authInfo }) => mcp.fetch(request, { authInfo })) };
 */
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  checkAddresses(options);
  const { issuers, keyTtlSeconds } = readResourceServerSettings(options);
  const connected = issuers.map((issuer) => httpIssuer(issuer, options, keyTtlSeconds));
  return buildResourceServer(options, connected);
}

/**
 * The same with custom issuers; addresses are not checked.
 *
 * @param overrides settings in place of those of the options
 * @throws TypeError
 */
export function buildResourceServer(
  options: ResourceServerOptions,
  issuers: readonly Issuer[],
  overrides: Partial<Pick<ResourceServerSettings, "proofClock">> = {},
): ResourceServer {
  const settings = { ...readResourceServerSettings(options), ...overrides };
  const metadata = buildMetadata(settings);
  const dpop = new Dpop(settings);
  const authenticator = createAuthenticator(createTokenVerifier(settings, issuers, dpop), dpop, settings, metadata);
  return {
    verify: (token, how = {}) => authenticator.verify(token, how),
    protect: (handler, { scopes } = {}) => createProtected(authenticator, handler, scopes),
    middleware: ({ scopes } = {}) => createMiddleware(authenticator, scopes),
    hono: ({ scopes } = {}) => createHono(authenticator, scopes),
    metadata: () => structuredClone(metadata.document),
    metadataPath: metadata.path,
    handleMetadata: (request) => metadataResponse(metadata, request),
    dpopNonce: () => dpop.nonce(),
  };
}
