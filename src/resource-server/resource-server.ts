import { createAuthenticator, type Scopes, type VerifyOptions } from "./authenticator.js";
import { createDpop } from "./dpop.js";
import {
  createHono,
  createProtected,
  type HonoMiddleware,
  metadataResponse,
  type ProtectedHandler,
} from "./fetch-handlers.js";
import { httpIssuer, type Issuer } from "./issuer.js";
import { metadataOf, type ResourceMetadataDocument } from "./metadata.js";
import { createMiddleware, type NodeMiddleware, type NodeRequest } from "./node-middleware.js";
import type { ResourceServerOptions } from "./options.js";
import { checkAddresses, readSettings, type Settings } from "./resolved-options.js";
import type { VerifiedToken } from "./verified-token.js";
import { createTokenVerifier } from "./verifier.js";

/** Protects one server: an MCP server, or any other that takes bearer tokens. */
export interface ResourceServer {
  /**
   * Judges a token.
   *
   * @throws `AgentAuthError` `not_authenticated` where there is no token: its answer names no error (RFC 6750 section 3.1);
   * `invalid_token`, `invalid_dpop_proof` or `use_dpop_nonce` (all of class `auth`, status 401); `insufficient_scope` (class
   * `auth`, status 403), or one of class `unavailable` (status 503) where the token could not be judged
   */
  verify(token: string, options?: VerifyOptions): Promise<VerifiedToken>;
  /**
   * A fetch-style handler that calls `handler` for requests with a good token alone. It answers 401, 403 and 503 itself,
   * and requests for the metadata.
   *
   * @param options `scopes` that a request needs beside `requiredScopes`: a list, or a function that tells them of a
   * request whose token is good; whoever reads the body there does so from `request.clone()`
   */
  protect(handler: ProtectedHandler, options?: { scopes?: Scopes<Request> }): (request: Request) => Promise<Response>;
  /** The same for Express, Connect and Node's `http`; the token is in `request.auth`, where the MCP SDK looks for it. */
  middleware<R extends NodeRequest = NodeRequest>(options?: { scopes?: Scopes<R> }): NodeMiddleware<R>;
  /** The same for Hono; the token is in `context.get("auth")`. */
  hono(options?: { scopes?: Scopes<Request> }): HonoMiddleware;
  /** The metadata document (RFC 9728 section 2). */
  metadata(): ResourceMetadataDocument;
  /** The path of the metadata document: the well-known segment before the path of the resource. */
  readonly metadataPath: string;
  /** The answer to a request for the metadata; undefined for any other. For servers that protect only a part of theirs. */
  handleMetadata(request: Request): Response | undefined;
  /** The nonce that proofs need from here on, for whoever answers `use_dpop_nonce`; undefined without `dpopNonces`. */
  dpopNonce(): Promise<string | undefined>;
}

/**
 * Makes a resource server. Keys and metadata of the issuers are read when the first token comes.
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
  const { issuers, keyTtl } = readSettings(options);
  return resourceServerOf(
    options,
    issuers.map((issuer) => httpIssuer(issuer, options, keyTtl)),
  );
}

/**
 * The same with issuers that are reached in another way; addresses are taken as they are.
 *
 * @param given settings in place of those that follow from the options
 * @throws TypeError
 */
export function resourceServerOf(
  options: ResourceServerOptions,
  issuers: readonly Issuer[],
  given: Partial<Pick<Settings, "proofClock">> = {},
): ResourceServer {
  const settings = { ...readSettings(options), ...given };
  const metadata = metadataOf(options);
  const dpop = createDpop(settings);
  const gate = createAuthenticator(createTokenVerifier(settings, issuers, dpop), dpop, settings, metadata.url);
  return {
    verify: (token, how = {}) => gate.verify(token, how),
    protect: (handler, { scopes } = {}) => createProtected(gate, metadata, handler, scopes),
    middleware: ({ scopes } = {}) => createMiddleware(gate, metadata, scopes),
    hono: ({ scopes } = {}) => createHono(gate, metadata, scopes),
    metadata: () => structuredClone(metadata.document),
    metadataPath: metadata.path,
    handleMetadata: (request) => metadataResponse(metadata, request),
    dpopNonce: () => dpop.nonce(),
  };
}
