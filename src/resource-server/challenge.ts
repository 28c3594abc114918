import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import { resourceMetadataAddress } from "../http/oauth-syntax.js";
import { PROOF_ALGORITHMS } from "./dpop.js";
import type { ResourceServerSettings } from "./options.js";
import { REFUSALS, type RefusalCode, type Scheme } from "./refusal.js";

/** A response to send, independent of the server. */
export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** The context of a response to a request without a valid token. */
export interface ChallengeContext {
  /** The address of the metadata; built from the configured resource, never from the request. */
  metadataUrl: string;
  scopes: readonly string[];
  acceptedSchemes: readonly Scheme[];
  scheme: Scheme;
  /** The nonce that proofs need from here on; undefined where they need none. */
  nonce: string | undefined;
}

const HEADERS = { "content-type": "application/json", "cache-control": "no-store" };
/** Seconds for `Retry-After`, where the error does not say. */
const RETRY_AFTER = 5;

function buildJsonReply(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return { status, headers: { ...HEADERS, ...headers }, body: JSON.stringify(body) };
}

/** The 401 for a request without credentials, which names no error (RFC 6750 section 3.1). */
export function askForToken(context: ChallengeContext): Reply {
  return buildChallengeReply(401, context.acceptedSchemes, context, { error: "unauthorized" }, {});
}

/**
 * The response to a refused token: 401 with `invalid_token` or what is wrong with its proof, 403
 * `insufficient_scope` with all the scopes needed, 503 where it could not be verified; undefined for an error that is none of
 * these.
 */
export function buildErrorReply(error: unknown, context: ChallengeContext): Reply | undefined {
  if (!isAgentAuthError(error)) return undefined;
  if (error.class === "unavailable") return buildUnavailableReply(error);
  const schemes = [context.scheme];
  if (error.status === 403) {
    const body = { error: "insufficient_scope" };
    return buildChallengeReply(403, schemes, context, body, body);
  }
  if (error.status !== 401) return undefined;
  // A bearer token that is bound to a key is no bearer token: its client must learn that it can prove the key.
  if (context.scheme === "Bearer" && context.acceptedSchemes.includes("DPoP")) schemes.push("DPoP");
  // An error thrown by the program's `scopes` function is not for a header.
  const code = isRefusal(error.code) ? error.code : "invalid_token";
  const body = { error: code, error_description: REFUSALS[code] };
  return buildChallengeReply(401, schemes, context, body, body);
}

function isRefusal(code: string): code is RefusalCode {
  return Object.hasOwn(REFUSALS, code);
}

function buildUnavailableReply({ message, retryAfter = RETRY_AFTER }: AgentAuthError): Reply {
  const body = { error: "temporarily_unavailable", error_description: message };
  return buildJsonReply(503, body, { "retry-after": String(retryAfter) });
}

/** The error belongs to the first scheme; the others follow it, because some clients read only one. */
function buildChallengeReply(
  status: number,
  schemes: readonly Scheme[],
  { metadataUrl, scopes, nonce }: ChallengeContext,
  body: Readonly<Record<string, string>>,
  error: Readonly<Record<string, string>>,
): Reply {
  const scope = scopes.length > 0 ? scopes.join(" ") : undefined;
  const challenges = schemes.map((scheme, nth) => {
    const algs = scheme === "DPoP" ? PROOF_ALGORITHMS.join(" ") : undefined;
    const parameters = Object.entries({ ...(nth === 0 && error), scope, algs, resource_metadata: metadataUrl })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}="${value}"`);
    return `${scheme} ${parameters.join(", ")}`;
  });
  const headers = { "www-authenticate": challenges.join(", "), ...(nonce !== undefined && { "dpop-nonce": nonce }) };
  return buildJsonReply(status, body, headers);
}

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
  url: string;
  /** Its path, as in requests. */
  path: string;
  reply: Reply;
}

// Readable from any web page: it is the same for everyone, and holds no secret.
const CORS = { "access-control-allow-origin": "*" };
const PREFLIGHT = {
  ...CORS,
  "access-control-allow-methods": "GET, HEAD",
  "access-control-allow-headers": "*",
  "access-control-max-age": "86400",
};

export function buildMetadata(settings: ResourceServerSettings): Metadata {
  const { resource, issuers, scopesSupported, dpop, metadata } = settings;
  const url = resourceMetadataAddress(resource);
  const document = {
    ...metadata,
    resource,
    authorization_servers: issuers,
    ...(scopesSupported && { scopes_supported: scopesSupported }),
    ...(dpop !== "off" && { dpop_signing_alg_values_supported: PROOF_ALGORITHMS }),
    ...(dpop === "required" && { dpop_bound_access_tokens_required: true }),
  };
  const reply = buildJsonReply(200, document, { ...CORS, "cache-control": "public, max-age=300" });
  return { document, url, path: new URL(url).pathname, reply: reply };
}

export function buildMetadataReply({ reply: answer }: Metadata, method: string): Reply {
  if (method === "GET") return answer;
  if (method === "HEAD") return { ...answer, body: "" };
  if (method === "OPTIONS") return { status: 204, headers: PREFLIGHT, body: "" };
  return buildJsonReply(405, { error: "invalid_request" }, { ...CORS, allow: "GET, HEAD, OPTIONS" });
}
