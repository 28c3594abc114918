import { resourceMetadataAddress } from "../http/oauth-syntax.js";
import { type Answer, jsonAnswer } from "./challenge.js";
import { PROOF_ALGORITHMS } from "./dpop-proof.js";
import type { ResourceServerSettings } from "./options.js";

/** The metadata of a protected resource (RFC 9728 section 2). */
export interface ResourceMetadataDocument {
  /** The resource identifier. */
  resource: string;
  /** The issuers whose tokens it accepts. */
  authorization_servers: readonly string[];
  /** The supported scopes. */
  scopes_supported?: readonly string[];
  /** The accepted algorithms of proofs (RFC 9449); left out where tokens must not be bound to a key. */
  dpop_signing_alg_values_supported?: readonly string[];
  /** Whether tokens must be bound to a key. */
  dpop_bound_access_tokens_required?: boolean;
  [member: string]: unknown;
}

/** The metadata of a resource server, and its address. */
export interface Metadata {
  document: ResourceMetadataDocument;
  /** The whole address. */
  url: string;
  /** Its path, as in requests. */
  path: string;
  answer: Answer;
}

// Readable from any web page: it is the same for everyone, and holds no secret.
const CORS = { "access-control-allow-origin": "*" };
const PREFLIGHT = {
  ...CORS,
  "access-control-allow-methods": "GET, HEAD",
  "access-control-allow-headers": "*",
  "access-control-max-age": "86400",
};

export function metadataOf({ resource, issuers, scopesSupported, dpop, metadata }: ResourceServerSettings): Metadata {
  const url = resourceMetadataAddress(resource);
  const document = {
    ...metadata,
    resource,
    authorization_servers: issuers,
    ...(scopesSupported && { scopes_supported: scopesSupported }),
    ...(dpop !== "off" && { dpop_signing_alg_values_supported: PROOF_ALGORITHMS }),
    ...(dpop === "required" && { dpop_bound_access_tokens_required: true }),
  };
  const answer = jsonAnswer(200, document, { ...CORS, "cache-control": "public, max-age=300" });
  return { document, url, path: new URL(url).pathname, answer };
}

/** The response to a request for the metadata, by its method. */
export function answerMetadata({ answer }: Metadata, method: string): Answer {
  if (method === "GET") return answer;
  if (method === "HEAD") return { ...answer, body: "" };
  if (method === "OPTIONS") return { status: 204, headers: PREFLIGHT, body: "" };
  return jsonAnswer(405, { error: "invalid_request" }, { ...CORS, allow: "GET, HEAD, OPTIONS" });
}
