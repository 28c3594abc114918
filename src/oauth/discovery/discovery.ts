import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { PeerPolicy } from "../../http/address-class.js";
import { followSignal, untilAborted } from "../../http/deadline.js";
import { quote } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import { isUnavailable, type ServerConnection, type TraceEntry } from "../http/http.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { Discovered, IssuerMetadata, ResourceMetadata, ServerMetadata } from "../model/metadata.js";
import { NO_RESOURCE, parseMcpUrl } from "../model/resource.js";
import {
  classifyOpenness,
  isLoginNotRequired,
  isNothingThere,
  loginNotRequiredError,
  mayWantSession,
  nothingThereError,
  requestChallenge,
  type UnauthenticatedResponse,
} from "./challenge-request.js";
import type { IssuerCandidate, IssuerExpectation } from "./issuer-choice.js";
import { boundFirst, issuerCandidates, issuerMismatchError } from "./issuer-choice.js";
import type { LoginFlowOptions, OverrideContext } from "./overrides.js";
import {
  chosenResource,
  hasOverride,
  loginNeeds,
  overridesFor,
  readOnce,
  traceOnce,
  trustedNames,
  withEveryOption,
} from "./overrides.js";
import {
  findResourceMetadata,
  namesNoIssuer,
  noResourceMetadata,
  rememberedMetadata,
  withUnseen,
} from "./resource-metadata.js";
import type { CheckMetadata, ForeignMetadata, ServerDiscovery } from "./server-metadata.js";
import { checkIssuerMetadata, checkServerMetadata, findMetadata } from "./server-metadata.js";

export interface DiscoveryContext extends ServerConnection, OverrideContext, IssuerExpectation, LoginFlowOptions {
  timeoutMs: number;
  /** The option `resourceMetadata`: replaces the address that the server names. */
  resourceMetadata?: string | undefined;
  mutualTls?: boolean | undefined;
  /** An earlier login at the server: its exceptions remain in force for its issuer. */
  remembered: OverrideContext["remembered"];
  trace: (entry: TraceEntry) => void;
}

export interface Search {
  mcpUrl: string;
  challenge: BearerChallenge | undefined;
  /** The response to a request without a token, if it is there already. */
  first?: UnauthenticatedResponse;
  signal: AbortSignal;
}

/** What an MCP server says about itself. */
export interface ExaminedServer {
  url: string;
  server: string;
  challenge: BearerChallenge | undefined;
  response: Pick<UnauthenticatedResponse, "status" | "challenge" | "refused">;
  resource: ResourceMetadata | undefined;
  /** Whether it answered that request, so that only an earlier login names the issuer. */
  isUnprotected: boolean;
  isAbsent: boolean;
  /** Reads each document once. */
  http: ServerDiscovery["http"];
  policy: PeerPolicy;
  signal: AbortSignal;
}

/**
 * Examines the MCP server.
 *
 * | answers without a token | publishes metadata | earlier login | result |
 * |---|---|---|---|
 * | no | yes | any | its metadata |
 * | no | no | any | none: one of 2025-03-26, if the user allows it |
 * | yes | yes | any | its metadata |
 * | yes | no | no | `login_not_required` |
 * | yes | no | yes | those of the earlier login, which some other request needed |
 *
 * Whether it answers is found out only where nothing else decides.
 */
async function examineServer(
  context: DiscoveryContext,
  { mcpUrl, challenge: received, signal, first: known }: Search,
): Promise<ExaminedServer> {
  const { url, resource: server } = parseMcpUrl(mcpUrl);
  const { overrides, remembered, trace, resourceMetadata: chosen } = context;
  const first = received ? undefined : (known ?? (await requestChallenge(context, url, signal)));
  const challenge = received ?? first?.challenge;
  // The token may have been rejected because the server has a new issuer.
  if (received) context.http.forgetDocuments();
  const http = readOnce(context.http);
  const policy = {
    bounds: await untilAborted(context.addressPolicy(), signal),
    crossOriginMetadata: hasOverride("allowCrossOriginMetadata", context),
    strictResource: overrides.strictResource === true,
    acceptedResource: context.resource ?? chosenResource(remembered),
  };
  const named = chosen === undefined ? (challenge?.resourceMetadata ?? []) : [chosen];
  const search = { http, mcpUrl: url, named, isChosen: chosen !== undefined, policy, trace, signal };
  const published = await findResourceMetadata(search);
  const isOpenable = first && !published && chosen === undefined && !hasOverride("legacyDiscovery", context);
  const openness = isOpenable ? await classifyOpenness(context, url, first, signal) : "closed";
  const isUnprotected = openness === "open";
  if (isUnprotected && remembered === undefined) throw loginNotRequiredError(server);
  const resource = isUnprotected && remembered ? rememberedMetadata(remembered, url) : published;
  const response = first ?? { status: 401, challenge };
  const isAbsent = openness === "absent";
  return { url, server, challenge, response, resource, isUnprotected, isAbsent, http, policy, signal };
}

/** The metadata of the first usable issuer: one that the server names, else the origin of a legacy server. */
async function findIssuer<T extends IssuerMetadata>(
  context: DiscoveryContext,
  examined: ExaminedServer,
  check: CheckMetadata<T>,
): Promise<T | ServerMetadata> {
  const { url, resource, policy } = examined;
  const isLegacy = !resource || resource.authorizationServers.length === 0;
  const issuers = isLegacy ? [new URL(url).origin] : await boundFirst(trustedNames(context, url, resource), context);
  const from = isLegacy ? url : resource.url;
  const candidates = issuerCandidates(context, issuers, { from, policy });
  if (isLegacy && !candidates.some((candidate) => overridesFor(candidate, context).includes("legacyDiscovery")))
    throw noIssuerError(examined);
  try {
    return await readFirstUsable(candidates, { named: issuers, from }, (candidate, own) =>
      findMetadata(metadataSearch(context, examined, candidate, own), check),
    );
  } catch (error) {
    if (!isLegacy || !isWithoutMetadata(error)) throw error;
    return legacyIssuer(url);
  }
}

/** The search for the metadata of one issuer. @param own why the metadata of the user's own issuer cannot be used */
function metadataSearch(
  context: DiscoveryContext,
  { http, policy: { bounds }, signal }: ExaminedServer,
  candidate: IssuerCandidate,
  own: AgentAuthError | undefined,
): ServerDiscovery {
  const missingPkceMetadata = overridesFor(candidate, context).includes("allowMissingPkceMetadata");
  const sameOriginEndpoints = context.overrides.sameOriginEndpoints === true;
  return {
    http,
    issuer: candidate.issuer,
    namedIssuer: candidate.namedIssuer,
    foreign: findForeignMetadata(candidate, context, own),
    policy: { bounds, missingPkceMetadata, sameOriginEndpoints },
    mutualTls: context.mutualTls,
    trace: context.trace,
    signal,
  };
}

// Failures that say that an issuer publishes no metadata of its own. A name that does not resolve is none of them: a
// network that spoofs DNS could hand the login to an issuer that asserts to be this one.
const ABSENT = new Set(["no_server_metadata", "bad_content_type", "issuer_mismatch"]);

/**
 * Where metadata that assert the issuer may send a login. What an issuer publishes itself, and what it may get of the
 * client's, rules out any other origin than its own.
 *
 * @param own why the metadata of the issuer itself cannot be used
 */
function findForeignMetadata(
  { issuer, namedIssuer, assertsIssuer }: IssuerCandidate,
  { sendsCredential }: IssuerExpectation,
  own: AgentAuthError | undefined,
): ForeignMetadata | undefined {
  if (!assertsIssuer || namedIssuer === undefined) return undefined;
  const isOwnOnly = sendsCredential === true || (own !== undefined && !ABSENT.has(own.code));
  return { at: namedIssuer, origin: isOwnOnly ? new URL(issuer).origin : undefined };
}

/**
 * The result for the first candidate whose metadata can be used.
 *
 * @param named the issuers that the server names, and the address of the document that names them
 */
async function readFirstUsable<T>(
  candidates: readonly IssuerCandidate[],
  { named, from }: { named: readonly string[]; from: string },
  read: (candidate: IssuerCandidate, own: AgentAuthError | undefined) => Promise<T>,
): Promise<T> {
  const failures: AgentAuthError[] = [];
  for (const candidate of candidates) {
    try {
      return await read(candidate, failures[0]);
    } catch (error) {
      // An issuer that is down may be the right one: using the next one would be a guess.
      if (!isAgentAuthError(error) || error.class !== "refused") throw error;
      failures.push(error);
    }
  }
  const [first] = candidates;
  if (first?.namedIssuer === undefined) throw failures[0];
  throw failures.find(({ code }) => !ABSENT.has(code)) ?? issuerMismatchError(first.issuer, named, from);
}

/** The error for a server that names no issuer, and that the user does not allow as one of 2025-03-26. */
function noIssuerError({ url, resource, response, isAbsent }: ExaminedServer): AgentAuthError {
  if (isAbsent) return nothingThereError(url);
  return resource ? namesNoIssuer(resource, response) : noResourceMetadata(url, response);
}

function isWithoutMetadata(error: unknown): boolean {
  return isAgentAuthError(error, "no_server_metadata");
}

/** The issuer of a server of 2025-03-26 that publishes nothing: its origin, with endpoints at fixed paths. */
function legacyIssuer(mcpUrl: string): ServerMetadata {
  const { origin } = new URL(mcpUrl);
  return {
    issuer: origin,
    authorizationEndpoint: `${origin}/authorize`,
    tokenEndpoint: `${origin}/token`,
    registrationEndpoint: `${origin}/register`,
    promisesIss: false,
    takesClientIdDocuments: false,
    url: mcpUrl,
  };
}

/** For the whole of discovery: a server that names many documents gets the limit of a request many times. */
const DISCOVERY_DEADLINE_MS = 30_000;

/**
 * Finds the authorization server of an MCP server: challenge, resource metadata (RFC 9728), server metadata (RFC 8414).
 * After the resource metadata, no request goes to the MCP server.
 *
 * @param challenge the challenge of a response that was already received; without it the server is requested to send one
 * @throws `AgentAuthError` of class `refused` if a peer broke a rule, `unavailable` if a peer did not answer or
 * discovery took more than 30 s (`timeout`)
 */
export function discover(
  context: DiscoveryContext,
  mcpUrl: string,
  challenge: BearerChallenge | undefined,
  signal?: AbortSignal,
): Promise<Discovered> {
  const search = { mcpUrl, challenge };
  return withDeadline(mcpUrl, signal, (own) =>
    searchIssuer(context, checkServerMetadata, { ...search, signal: own }).catch((error: unknown) => {
      throw withUnseen(error, challenge, parseMcpUrl(mcpUrl).resource);
    }),
  );
}

/** {@link discover} for a machine grant: the issuer needs a token endpoint only. */
export function discoverIssuer(
  context: DiscoveryContext,
  mcpUrl: string,
  challenge: BearerChallenge | undefined,
  signal?: AbortSignal,
): Promise<Discovered<IssuerMetadata>> {
  return withDeadline(mcpUrl, signal, (own) =>
    searchIssuer(context, checkIssuerMetadata, { mcpUrl, challenge, signal: own }),
  );
}

/**
 * Reads the metadata of an identity provider, which the user names: no MCP server is involved. What it asks for instead of
 * scopes of a resource is an id token.
 *
 * @throws as {@link discover}
 */
export function discoverProvider(context: DiscoveryContext, address: string, signal?: AbortSignal) {
  const { overrides, mutualTls, trace, http, expectedIssuer: issuer = address } = context;
  const { resource: server } = parseMcpUrl(address);
  return withDeadline(address, signal, async (own) => {
    const missingPkceMetadata = hasOverride("allowMissingPkceMetadata", context);
    const sameOriginEndpoints = overrides.sameOriginEndpoints === true;
    const policy = { bounds: await context.addressPolicy(), missingPkceMetadata, sameOriginEndpoints };
    const search = { http: readOnce(http), issuer, policy, mutualTls, trace, signal: own };
    const found = await findMetadata(search, checkServerMetadata);
    const identity = { resource: NO_RESOURCE, scopesSupported: ["openid"], dpopRequired: false, url: found.url };
    const resource = { ...identity, authorizationServers: [issuer] };
    return { server, challenge: undefined, resource, isUnprotected: false, issuer: found };
  });
}

/**
 * Whether a server requires a login: not if it answers requests without a token and names no issuer.
 *
 * @throws `AgentAuthError` if a peer did not answer, or `not_found`
 */
export function requiresLogin(context: DiscoveryContext, mcpUrl: string, signal?: AbortSignal): Promise<boolean> {
  return withDeadline(mcpUrl, signal, async (own) => {
    const first = await requestChallenge(context, parseMcpUrl(mcpUrl).url, own);
    if (first.challenge !== undefined || !(first.isAnswered || mayWantSession(first))) return true;
    const search = { mcpUrl, challenge: undefined, first, signal: own };
    return searchIssuer(context, checkIssuerMetadata, search).then(
      () => true,
      (error: unknown) => {
        if (isUnavailable(error) || isNothingThere(error)) throw error;
        return !isLoginNotRequired(error);
      },
    );
  });
}

async function withDeadline<T>(
  mcpUrl: string,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const seconds = DISCOVERY_DEADLINE_MS / 1000;
  const message = `discovery for ${quote(mcpUrl)} did not finish in ${seconds} s`;
  const hint = "discover() reports every requested address";
  const remedy: Remedy = { action: "inspect", subject: "discovery" };
  const timeoutError = () => new AgentAuthError("timeout", message, { class: "unavailable", hint, remedy });
  const call = followSignal(signal, DISCOVERY_DEADLINE_MS, timeoutError);
  try {
    return await work(call.signal);
  } finally {
    call.release();
  }
}

/** The search, step by step: the server, then its issuer; where that fails, which options would help. */
async function searchIssuer<T extends IssuerMetadata>(
  context: DiscoveryContext,
  check: CheckMetadata<T>,
  search: Search,
): Promise<Discovered<T | ServerMetadata>> {
  const examined = await examineServer(context, search);
  const { server, challenge, resource, isUnprotected } = examined;
  const { trace, traceUnused } = traceOnce(context.trace);
  let refusal: unknown;
  try {
    const issuer = await findIssuer({ ...context, trace }, examined, check);
    return { server, challenge, resource, isUnprotected, issuer };
  } catch (error) {
    refusal = error;
  }
  if (isUnprotected && isWithoutMetadata(refusal)) throw loginNotRequiredError(server);
  throw await withEveryOption(refusal, async (more) => {
    const overrides = { ...context.overrides, ...more };
    const issuer = await findIssuer({ ...context, overrides, trace: traceUnused }, examined, check);
    return loginNeeds(issuer, context);
  });
}
