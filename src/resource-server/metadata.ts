import { resourceMetadataAddress } from "../http/well-known.js";
import { PROOF_ALGORITHMS } from "./dpop-proof.js";
import { type Answer, jsonAnswer } from "./error-response.js";
import type { ResourceServerOptions } from "./options.js";
import { readDpop, readScopes } from "./resolved-options.js";

/** What a protected resource says of itself (RFC 9728 section 2). */
export interface ResourceMetadataDocument {
  /** The resource identifier. */
  resource: string;
  /** The issuers whose tokens it takes. */
  authorization_servers: readonly string[];
  /** The scopes that it knows. */
  scopes_supported?: readonly string[];
  /** The algorithms that proofs are taken with (RFC 9449); left out where tokens must not be bound to a key. */
  dpop_signing_alg_values_supported?: readonly string[];
  /** Whether tokens must be bound to a key. */
  dpop_bound_access_tokens_required?: boolean;
  [member: string]: unknown;
}

/** The metadata of a resource server, and where it lies. */
export interface Metadata {
  document: ResourceMetadataDocument;
  /** The whole address. */
  url: string;
  /** Its path, as requests for it have it. */
  path: string;
}

/** Makes the metadata. @throws TypeError */
export function metadataOf(options: ResourceServerOptions): Metadata {
  const { resource, authorizationServers, requiredScopes, metadata } = options;
  const scopes = readScopes("scopesSupported", options.scopesSupported ?? requiredScopes);
  const isSaid = options.scopesSupported !== undefined || scopes.length > 0;
  const dpop = readDpop(options);
  const url = resourceMetadataAddress(resource);
  const document = {
    ...metadata,
    resource,
    authorization_servers: [...authorizationServers],
    ...(isSaid && { scopes_supported: scopes }),
    ...(dpop !== "off" && { dpop_signing_alg_values_supported: PROOF_ALGORITHMS }),
    ...(dpop === "required" && { dpop_bound_access_tokens_required: true }),
  };
  return { document, url, path: new URL(url).pathname };
}

// Whoever may read it may read it from any web page: it is the same for all, and nothing in it is secret.
const CORS = { "access-control-allow-origin": "*" };
const PREFLIGHT = {
  ...CORS,
  "access-control-allow-methods": "GET, HEAD",
  "access-control-allow-headers": "*",
  "access-control-max-age": "86400",
};

/** The answer to a request for the metadata, by its method. */
export function answerMetadata({ document }: Metadata, method: string): Answer {
  if (method === "GET" || method === "HEAD") {
    const answer = jsonAnswer(200, document, { ...CORS, "cache-control": "public, max-age=300" });
    return method === "HEAD" ? { ...answer, body: "" } : answer;
  }
  if (method === "OPTIONS") return { status: 204, headers: PREFLIGHT, body: "" };
  return jsonAnswer(405, { error: "invalid_request" }, { ...CORS, allow: "GET, HEAD, OPTIONS" });
}
