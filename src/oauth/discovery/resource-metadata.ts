import { type Advice, AgentAuthError, errorMessage, isAgentAuthError, withHint } from "../../errors.js";
import { parseUrl } from "../../http/address.js";
import { checkAddress, type PeerPolicy } from "../../http/address-class.js";
import type { BufferedResponse } from "../../http/buffered-response.js";
import { resourceMetadataAddress } from "../../http/oauth-syntax.js";
import { refusalError } from "../../http/refuse.js";
import { quote } from "../../redact.js";
import type { LoginRemedy, UnseenByLogin } from "../../remedy.js";
import { type OAuthHttp, type Remembered, serverFailure, type TraceEntry } from "../http/http.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { ResourceMetadata } from "../model/metadata.js";
import { coversServer, parseMcpUrl } from "../model/resource.js";
import { parseScope } from "../model/scope.js";
import type { UnauthenticatedResponse } from "./challenge-request.js";
import { readDocument } from "./server-metadata.js";

export interface ResourceDiscovery {
  http: Pick<OAuthHttp, "document">;
  mcpUrl: string;
  /** Addresses that the challenge named, or the user. */
  named: readonly string[];
  /** Whether the user named them. */
  isChosen?: boolean;
  policy: PeerPolicy & {
    crossOriginMetadata: boolean;
    strictResource: boolean;
    /** The resource that the user accepts although only a challenge names its document, if it is a parent. */
    acceptedResource?: string | undefined;
  };
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}

const AT_LEAST_ONE = "must name at least one authorization server (RFC 9728 section 2)";
const MAX_ISSUERS = 16;
const MEMBERS = ["resource", "authorization_servers"];
/** More addresses than this in one challenge are an attempt to make us send many requests. */
const MAX_NAMED = 8;

/** Default addresses of the resource metadata: before the path, then at the root (RFC 9728 section 3.1). */
export function wellKnownAddresses(mcpUrl: string): string[] {
  return [...new Set([mcpUrl, new URL(mcpUrl).origin].map(resourceMetadataAddress))];
}

/**
 * Finds the resource metadata: at the first eight addresses that the challenge named, else at the well-known ones. A
 * response that says "no document" leads to the next address; a failure (5xx, no response) does not, because the next
 * address may have another trust rule.
 *
 * @returns undefined if no address has metadata; metadata without an issuer if no address has one that names one
 * @throws `AgentAuthError` `bad_resource_metadata`, `resource_mismatch`, `bad_address`, or a network error
 */
export async function findResourceMetadata(discovery: ResourceDiscovery): Promise<ResourceMetadata | undefined> {
  let named: string[];
  try {
    named = discovery.named.map((url) => checkNamed(url, discovery)).slice(0, MAX_NAMED);
  } catch (error) {
    throw (await explainedByServer(error, discovery)) ?? error;
  }
  const search = { ...discovery, named };
  // A server that names an address without a document may still have one at the well-known address.
  const candidates = new Set([...named, ...wellKnownAddresses(discovery.mcpUrl)]);
  let first: unknown;
  let withoutIssuer: ResourceMetadata | undefined;
  for (const url of candidates) {
    // After a document that broke a rule, only other addresses from the challenge are tried: the well-known ones have
    // another trust rule.
    if ((first ?? withoutIssuer) !== undefined && !named.includes(url)) break;
    try {
      const found = await readResourceDocument(url, search);
      if (found && found.authorizationServers.length > 0) return found;
      withoutIssuer ??= found;
    } catch (error) {
      if (!isAgentAuthError(error) || error.class !== "refused") throw error;
      first ??= error;
    }
  }
  if (first !== undefined) throw first;
  return withoutIssuer;
}

/** The refusal of metadata on another origin, where the server's own document says that its address is another one. */
async function explainedByServer(error: unknown, discovery: ResourceDiscovery): Promise<AgentAuthError | undefined> {
  if (!isAgentAuthError(error) || error.remedy?.action !== "allow") return undefined;
  if (error.remedy.option !== "allowCrossOriginMetadata" || discovery.isChosen) return undefined;
  for (const url of wellKnownAddresses(discovery.mcpUrl)) {
    const own: unknown = await readResourceDocument(url, { ...discovery, named: [] }).catch(
      (reason: unknown) => reason,
    );
    if (isAgentAuthError(own) && own.remedy?.action === "login") return withHint(error, own.hint, own.remedy);
  }
  return undefined;
}

type TokenlessResponse = Pick<UnauthenticatedResponse, "status" | "challenge" | "refused">;

/** Only a server that requires a token can be one of 2025-03-26 with an issuer; some redirect to their login page. */
function requiresToken({ status, challenge, refused }: TokenlessResponse): boolean {
  return status === 401 || challenge !== undefined || refused !== undefined;
}

export function namesNoIssuer({ url }: ResourceMetadata, response: TokenlessResponse): AgentAuthError {
  const complaint = { field: "authorization_servers", value: undefined, from: url, rule: AT_LEAST_ONE };
  return refusalError("bad_resource_metadata", {
    ...complaint,
    ...(requiresToken(response) && { override: "legacyDiscovery" }),
  });
}

export function noResourceMetadata(mcpUrl: string, response: TokenlessResponse): AgentAuthError {
  const legacy = "a server of the MCP revision 2025-03-26 is reached with legacyDiscovery";
  const remedy = { action: "allow", option: "legacyDiscovery" } as const;
  const advice: Advice = requiresToken(response)
    ? { hint: `${legacy}; discover() reports what was requested`, remedy }
    : { hint: `check the address: it answered a request without a token with HTTP ${response.status}` };
  const why = response.refused === undefined ? "" : `; ${response.refused.message}`;
  const message = `${quote(mcpUrl)} names no authorization server (RFC 9728)${why}`;
  return new AgentAuthError("no_resource_metadata", message, { class: "refused", ...advice });
}

/** What the metadata said at an earlier login, for a server that names their address only in some of its responses. */
export function rememberedMetadata(
  { issuer, namedIssuer = issuer, resource, overrides }: Omit<Remembered, "endpoints">,
  mcpUrl: string,
): ResourceMetadata {
  return {
    resource: overrides.includes("resource") ? parseMcpUrl(mcpUrl).resource : resource,
    authorizationServers: [namedIssuer],
    scopesSupported: undefined,
    dpopRequired: false,
    url: mcpUrl,
  };
}

/**
 * Refuses the first address of a challenge on another origin than the MCP server's, as discovery would.
 *
 * @throws `AgentAuthError` `bad_address`
 */
export function checkFirstNamed({ resourceMetadata: [first] }: BearerChallenge, mcpUrl: string): void {
  const isForeign = first !== undefined && parseUrl(first)?.origin !== new URL(mcpUrl).origin;
  if (isForeign && !first.startsWith("/")) throw crossOriginMetadataError(first, challengeAt(mcpUrl));
}

function challengeAt(mcpUrl: string): string {
  return `the WWW-Authenticate of ${mcpUrl}`;
}

function crossOriginMetadataError(value: string, from: string): AgentAuthError {
  const rule = "must be on the MCP server's origin (RFC 9728 section 7.3)";
  const override = "allowCrossOriginMetadata";
  return refusalError("bad_address", { field: "resource_metadata", value, from, rule, override });
}

function checkNamed(value: string, { mcpUrl, isChosen, policy, trace }: ResourceDiscovery): string {
  const from = isChosen ? "the option resourceMetadata" : challengeAt(mcpUrl);
  // Some servers name the path alone.
  const address = value.startsWith("/") && URL.canParse(value, mcpUrl) ? new URL(value, mcpUrl).href : value;
  try {
    const url = checkAddress(address, "resource_metadata", from, policy);
    if (new URL(url).origin !== new URL(mcpUrl).origin && !policy.crossOriginMetadata)
      throw crossOriginMetadataError(value, from);
    return url;
  } catch (error) {
    trace({ step: "resource metadata", method: "GET", url: value, used: false, why: errorMessage(error) });
    throw error;
  }
}

async function readResourceDocument(url: string, discovery: ResourceDiscovery): Promise<ResourceMetadata | undefined> {
  const { http, trace, signal } = discovery;
  const entry = { step: "resource metadata", method: "GET", url } as const;
  let reply: BufferedResponse | undefined;
  try {
    reply = await http.document(url, signal);
    const { status } = reply;
    if (status >= 500 || status === 429) throw serverFailure(url, status);
    if (!reply.response.ok) {
      trace({ ...entry, status, used: false, why: "no document here" });
      return undefined;
    }
    const document = readDocument(reply);
    // Servers that answer every path with JSON of their own, such as that of a health check, publish nothing there.
    if (!discovery.named.includes(url) && !MEMBERS.some((name) => name in document)) {
      trace({ ...entry, status, used: false, why: "it is no resource metadata" });
      return undefined;
    }
    const metadata = checkMetadata(document, url, discovery);
    const isParent = !coversServer(new URL(metadata.resource), new URL(discovery.mcpUrl), true);
    // The document of the server itself takes precedence over that of the whole origin.
    const ownUrl = resourceMetadataAddress(discovery.mcpUrl);
    const isNamedRoot = discovery.named.includes(url) && new URL(url).href !== ownUrl;
    const own = isParent && isNamedRoot ? await readResourceDocument(ownUrl, discovery) : undefined;
    const why = own ? "the server has its own document" : isParent ? parentText(metadata) : "it describes this server";
    trace({ ...entry, status, used: own === undefined, why });
    return own ?? metadata;
  } catch (error) {
    trace({ ...entry, used: false, why: errorMessage(error) });
    // A page in place of a document comes from a server that returns its front page for every path.
    const page = error instanceof AgentAuthError && error.code === "bad_content_type";
    const isDocument = reply?.text.trimStart().startsWith("{");
    if (page && !isDocument && !discovery.named.includes(url)) return undefined;
    throw error;
  }
}

function checkMetadata(document: Record<string, unknown>, url: string, discovery: ResourceDiscovery): ResourceMetadata {
  const { mcpUrl, policy } = discovery;
  const { resource, authorization_servers: servers = [], bearer_methods_supported: methods } = document;
  const complain = (field: string, value: unknown, rule: string) =>
    refusalError("bad_resource_metadata", { field, value, from: url, rule });
  const named = checkAddress(resource, "resource", url, policy);
  // A parent of the server (RFC 9728 section 3.3) is accepted only from the well-known addresses, which the origin controls:
  // a server on a path of a shared host would otherwise get tokens that are valid for its neighbours.
  const isOwn = wellKnownAddresses(mcpUrl).includes(new URL(url).href);
  const identityOnly = policy.strictResource || !isOwn;
  const isAccepted = named === policy.acceptedResource && !policy.strictResource;
  if (!coversServer(new URL(named), new URL(mcpUrl), identityOnly && !isAccepted)) {
    const isAbove = coversServer(new URL(named), new URL(mcpUrl), false);
    const isPlain = [new URL(named).href, new URL(named).origin].includes(named);
    throw refusalError("resource_mismatch", {
      field: "resource",
      value: resource,
      from: url,
      rule: `must be ${mcpUrl}${alternativeText(identityOnly, policy)} (RFC 9728 section 3.3)`,
      ...(isAbove && isPlain && !policy.strictResource && { override: "resource", overrideValue: named }),
      // What a server writes goes into a command that the user pastes.
      ...(!isAbove && isOwn && /^https?:\/\/[\w.:/~-]{1,500}$/.test(named) && logInAt(named)),
    });
  }
  if (!Array.isArray(servers)) throw complain("authorization_servers", servers, AT_LEAST_ONE);
  if (servers.length > MAX_ISSUERS)
    throw complain("authorization_servers", servers.length, `must not name more than ${MAX_ISSUERS}`);
  if (Array.isArray(methods) && !methods.includes("header")) {
    const rule = 'must include "header": tokens are not sent in any other way (RFC 6750 section 5.3)';
    throw complain("bearer_methods_supported", methods, rule);
  }
  const scopes = document["scopes_supported"];
  return {
    resource: named,
    authorizationServers: [...new Set(servers.map((server) => checkNamedIssuer(server, url, policy)))],
    scopesSupported: scopes === undefined ? undefined : parseScope(scopes, "scopes_supported", url),
    dpopRequired: document["dpop_bound_access_tokens_required"] === true,
    url,
  };
}

function logInAt(server: string): Required<Advice> {
  return { hint: "log in at the address that the server calls itself by", remedy: { action: "login", server } };
}

/** Whether metadata describe a parent of the server, and are not at an address that the origin controls. */
export function isUnprovenParent({ resource, url }: ResourceMetadata, mcpUrl: string): boolean {
  const isParent = !coversServer(new URL(resource), new URL(mcpUrl), true);
  return isParent && !wellKnownAddresses(mcpUrl).includes(new URL(url).href);
}

function alternativeText(identityOnly: boolean, { strictResource }: ResourceDiscovery["policy"]): string {
  if (!identityOnly) return " or a parent of it";
  return strictResource ? "" : " where the document is not at a well-known address of it";
}

function parentText({ resource }: ResourceMetadata): string {
  return `it describes ${quote(resource)}, a parent of this server: the token may be accepted everywhere below that`;
}

/** An issuer identifier has no query and no fragment (RFC 8414 section 2). */
function checkNamedIssuer(value: unknown, from: string, policy: PeerPolicy): string {
  const issuer = checkAddress(value, "authorization_servers", from, policy);
  if (issuer.includes("?")) {
    const rule = "must not have a query (RFC 8414 section 2)";
    throw refusalError("bad_address", { field: "authorization_servers", value, from, rule });
  }
  return issuer;
}

/** What a later login cannot find out: a server that accepts some requests without a token sends it no challenge. */
export function challengeOnlyMetadata(challenge: BearerChallenge | undefined, server: string): UnseenByLogin {
  const [resourceMetadata] = challenge?.resourceMetadata ?? [];
  if (resourceMetadata === undefined || wellKnownAddresses(server).includes(resourceMetadata)) return {};
  return { resourceMetadata, scope: challenge?.scope };
}

/** An error whose remedy is an option, with what a login with the option needs as well (see {@link challengeOnlyMetadata}). */
export function withUnseen(error: unknown, challenge: BearerChallenge | undefined, server: string): unknown {
  const remedy = isAgentAuthError(error) ? error.remedy : undefined;
  if (!isAgentAuthError(error) || (remedy?.action !== "allow" && remedy?.action !== "configure")) return error;
  const { resourceMetadata, scope } = challengeOnlyMetadata(challenge, server);
  if (resourceMetadata === undefined) return error;
  return withHint(error, error.hint, { ...remedy, login: { resourceMetadata, ...(scope !== undefined && { scope }) } });
}

/** The challenge that a remedy was made of, as far as a login needs it (see {@link challengeOnlyMetadata}). */
export function challengeOfRemedy({ resourceMetadata, scope }: LoginRemedy): BearerChallenge | undefined {
  if (resourceMetadata === undefined) return undefined;
  return { resourceMetadata: [resourceMetadata], scope, error: undefined, schemes: [] };
}
