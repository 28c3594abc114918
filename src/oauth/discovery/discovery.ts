import { AgentAuthError } from "../../errors.js";
import { followSignal } from "../../http/deadline.js";
import { quote } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import { isUnavailable } from "../http/http.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { Discovered, IssuerMetadata, ServerMetadata } from "../model/metadata.js";
import { NO_RESOURCE, parseMcpUrl } from "../model/resource.js";
import {
  isLoginNotRequired,
  isNothingThere,
  loginNotRequiredError,
  mayWantSession,
  requestChallenge,
} from "./challenge-request.js";
import { findIssuer, isWithoutMetadata, type ReadMetadata } from "./issuer-search.js";
import { readOnce, traceOnce, withEveryOption } from "./look-ahead.js";
import { hasOverride, loginNeeds } from "./overrides.js";
import { withUnseen } from "./resource-metadata.js";
import { type DiscoveryContext, examineServer, type Search } from "./server-examination.js";
import { findIssuerMetadata, findServerMetadata } from "./server-metadata.js";

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
    searchIssuer(context, findServerMetadata, { ...search, signal: own }).catch((error: unknown) => {
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
    searchIssuer(context, findIssuerMetadata, { mcpUrl, challenge, signal: own }),
  );
}

/**
 * Reads the metadata of an identity provider, which the user names: no MCP server is involved. What it asks for instead of
 * scopes of a resource is an id token.
 *
 * @throws as {@link discover}
 */
export function discoverProvider(
  context: DiscoveryContext,
  address: string,
  signal?: AbortSignal,
): Promise<Discovered> {
  const { overrides, mutualTls, trace, http, expectedIssuer: issuer = address } = context;
  const { resource: server } = parseMcpUrl(address);
  return withDeadline(address, signal, async (own) => {
    const missingPkceMetadata = hasOverride("allowMissingPkceMetadata", context);
    const sameOriginEndpoints = overrides.sameOriginEndpoints === true;
    const policy = { bounds: await context.addressPolicy(), missingPkceMetadata, sameOriginEndpoints };
    const found = await findServerMetadata({ http: readOnce(http), issuer, policy, mutualTls, trace, signal: own });
    const { url } = found;
    const resource = {
      resource: NO_RESOURCE,
      authorizationServers: [issuer],
      scopesSupported: ["openid"],
      dpopRequired: false,
    };
    return { server, challenge: undefined, resource: { ...resource, url }, isUnprotected: false, issuer: found };
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
    return searchIssuer(context, findIssuerMetadata, search).then(
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
  const call = followSignal(
    signal,
    DISCOVERY_DEADLINE_MS,
    () => new AgentAuthError("timeout", message, { class: "unavailable", hint, remedy }),
  );
  try {
    return await work(call.signal);
  } finally {
    call.release();
  }
}

/** The search, step by step: the server, then its issuer; where that fails, which options would help. */
async function searchIssuer<T extends IssuerMetadata>(
  context: DiscoveryContext,
  read: ReadMetadata<T>,
  search: Search,
): Promise<Discovered<T | ServerMetadata>> {
  const examined = await examineServer(context, search);
  const { server, challenge, resource, isUnprotected } = examined;
  const { trace, traceUnused } = traceOnce(context.trace);
  let refusal: unknown;
  try {
    const issuer = await findIssuer({ ...context, trace }, examined, read);
    return { server, challenge, resource, isUnprotected, issuer };
  } catch (error) {
    refusal = error;
  }
  if (isUnprotected && isWithoutMetadata(refusal)) throw loginNotRequiredError(server);
  throw await withEveryOption(refusal, async (more) => {
    const overrides = { ...context.overrides, ...more };
    const issuer = await findIssuer({ ...context, overrides, trace: traceUnused }, examined, read);
    return loginNeeds(issuer, context);
  });
}
