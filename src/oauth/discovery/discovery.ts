import { AgentAuthError, isAgentAuthError, type Remedy } from "../../errors.js";
import { follow, untilAborted } from "../../http/deadline.js";
import { networkError } from "../../http/network-error.js";
import { refused } from "../../http/refuse.js";
import { quote } from "../../redact.js";
import { issuerMismatch } from "../client/issuer-binding.js";
import type { Grant } from "../grant/grant.js";
import type { ServerConnection } from "../http/server-connection.js";
import type { TraceEntry } from "../http/trace.js";
import { type BearerChallenge, bearerChallenge } from "./challenge.js";
import { parseMcpUrl } from "./resource.js";
import { findResourceMetadata } from "./resource-metadata.js";
import type { ServerDiscovery } from "./server-discovery.js";
import { findIssuerMetadata, findServerMetadata } from "./server-metadata.js";
import type { Discovered, IssuerMetadata, ResourceMetadata, ServerMetadata } from "./types.js";

/** Security checks that the user may disable or tighten for a server, each by a flag of the same name. */
export interface Overrides {
  /** Accept a server whose metadata do not list PKCE S256; S256 is sent all the same. */
  allowMissingPkceMetadata?: boolean | undefined;
  /** Follow a `resource_metadata` address on another origin than the MCP server's. */
  allowCrossOriginMetadata?: boolean | undefined;
  /**
   * Log in at an issuer whose authorization and token endpoints have different origins, although it does not promise
   * `iss` (RFC 9207). A `login` with `confirmEndpoints` asks the user instead.
   */
  allowCrossOriginEndpoints?: boolean | undefined;
  /** Treat a server without metadata as one of the revision 2025-03-26: its origin is the issuer. */
  legacyDiscovery?: boolean | undefined;
  /** Allow a public server to name loopback and private addresses; link-local ones are never allowed. */
  allowPrivateNetwork?: boolean | undefined;
  /** Require the resource to be exactly the MCP server's address, not a parent of it. */
  strictResource?: boolean | undefined;
  /** Require all endpoints of the issuer to share its origin, so that the code from its page is not sent elsewhere. */
  sameOriginEndpoints?: boolean | undefined;
}

/** What discovery depends on. */
export interface DiscoveryContext extends ServerConnection {
  timeoutMs: number;
  overrides: Overrides;
  /** The only issuer to accept, even if a server names others. */
  expectedIssuer?: string | undefined;
  /** Whether requests to issuers present a client certificate. */
  mutualTls?: boolean | undefined;
  /** An earlier login at the server: its overrides remain in force for its issuer. */
  remembered: Pick<Grant, "issuer" | "overrides"> | undefined;
  trace: (entry: TraceEntry) => void;
}

const STORED_OVERRIDES = [
  "allowMissingPkceMetadata",
  "allowCrossOriginMetadata",
  "allowCrossOriginEndpoints",
  "allowPrivateNetwork",
  "legacyDiscovery",
] as const satisfies readonly (keyof Overrides)[];

/** The overrides in force for an issuer: those of this call and those stored with the earlier login. */
export function overridesFor(issuer: string, { overrides, remembered }: OverrideContext): string[] {
  const before = remembered?.issuer === issuer ? remembered.overrides : [];
  return STORED_OVERRIDES.filter((name) => overrides[name] === true || before.includes(name));
}

type OverrideContext = Pick<DiscoveryContext, "overrides" | "remembered">;

// Sent without a session: only the challenge matters, and some servers accept `initialize` without a token.
const CHALLENGE_BODY = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });

/**
 * Sends a request without a token to the MCP server, to get its challenge.
 *
 * @returns the challenge; undefined if the response has none
 * @throws `AgentAuthError` a network error
 */
async function requestChallenge(
  context: DiscoveryContext,
  mcpUrl: string,
  signal?: AbortSignal,
): Promise<BearerChallenge | undefined> {
  const call = follow(signal, context.timeoutMs, () => {
    return new AgentAuthError("timeout", `${new URL(mcpUrl).host}: no response in ${context.timeoutMs / 1000} s`, {
      class: "unavailable",
    });
  });
  const entry = { step: "challenge", method: "POST", url: mcpUrl } as const;
  try {
    const request = context.fetch(mcpUrl, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: CHALLENGE_BODY,
      redirect: "manual",
      signal: call.signal,
    });
    const response = await untilAborted(request, call.signal);
    // Only the headers matter, and an event stream would not end.
    await response.body?.cancel().catch(() => undefined);
    const challenge =
      response.status === 401 || response.status === 403 ? bearerChallenge(response.headers) : undefined;
    const why = challenge
      ? "the server requires a bearer token"
      : "the server does not explicitly require a bearer token";
    context.trace({ ...entry, status: response.status, used: challenge !== undefined, why });
    return challenge;
  } catch (thrown) {
    const error =
      call.signal.aborted && isAgentAuthError(call.signal.reason) ? call.signal.reason : networkError(thrown, mcpUrl);
    context.trace({ ...entry, used: false, why: error.message });
    throw error;
  } finally {
    call.release();
  }
}

/** For the whole of discovery: a server that names many documents gets the limit of a request many times. */
const DISCOVERY_DEADLINE_MS = 30_000;

/**
 * Finds the authorization server of an MCP server: challenge, resource metadata (RFC 9728), server metadata (RFC 8414).
 * After the resource metadata, no request goes to the MCP server.
 *
 * @param challenge the challenge of a response that was already received; without it the server is asked for one
 * @throws `AgentAuthError` of class `refused` if a peer broke a rule, `unavailable` if a peer did not answer or
 * discovery took more than 30 s (`timeout`)
 */
export function discover(
  context: DiscoveryContext,
  mcpUrl: string,
  challenge: BearerChallenge | undefined,
  signal?: AbortSignal,
): Promise<Discovered> {
  return withDeadline(mcpUrl, signal, (own) => find(context, findServerMetadata, { mcpUrl, challenge, signal: own }));
}

/** {@link discover} for a machine grant: the issuer needs a token endpoint only. */
export function discoverIssuer(
  context: DiscoveryContext,
  mcpUrl: string,
  challenge: BearerChallenge | undefined,
  signal?: AbortSignal,
): Promise<Discovered<IssuerMetadata>> {
  return withDeadline(mcpUrl, signal, (own) => find(context, findIssuerMetadata, { mcpUrl, challenge, signal: own }));
}

/** Runs discovery within its deadline. */
async function withDeadline<T>(
  mcpUrl: string,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const seconds = DISCOVERY_DEADLINE_MS / 1000;
  const message = `discovery for ${quote(mcpUrl)} did not finish in ${seconds} s`;
  const hint = "discover() reports every address that was asked";
  const remedy: Remedy = { action: "inspect", subject: "discovery" };
  const call = follow(
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

interface Search {
  mcpUrl: string;
  challenge: BearerChallenge | undefined;
  signal: AbortSignal;
}

async function find<T extends IssuerMetadata>(
  context: DiscoveryContext,
  read: (discovery: ServerDiscovery) => Promise<T>,
  { mcpUrl, challenge, signal }: Search,
): Promise<Discovered<T | ServerMetadata>> {
  const { url, resource: server } = parseMcpUrl(mcpUrl);
  const { overrides, http, trace } = context;
  const received = challenge ?? (await requestChallenge(context, url, signal));
  // The token may have been rejected because the server has a new issuer.
  if (challenge) http.forgetDocuments();
  const policy = {
    bounds: await untilAborted(context.addressPolicy(), signal),
    crossOriginMetadata: overrides.allowCrossOriginMetadata === true || hasCrossOriginOverride(context),
    strictResource: overrides.strictResource === true,
  };
  const policyOf = (issuer: string) => ({
    bounds: policy.bounds,
    missingPkceMetadata: overridesFor(issuer, context).includes("allowMissingPkceMetadata"),
    sameOriginEndpoints: overrides.sameOriginEndpoints === true,
  });
  const named = received?.resourceMetadata ?? [];
  const resource = await findResourceMetadata({ http, mcpUrl: url, named, policy, trace, signal });
  if (resource) {
    const issuer = await firstUsable(candidatesFor(context, url, resource), (candidate) =>
      read({ http, issuer: candidate, policy: policyOf(candidate), mutualTls: context.mutualTls, trace, signal }),
    );
    return { server, challenge: received, resource, issuer };
  }
  const { origin } = new URL(url);
  expectIssuer(context, [origin], url);
  if (!overridesFor(origin, context).includes("legacyDiscovery")) {
    throw new AgentAuthError("no_resource_metadata", `${quote(url)} names no authorization server (RFC 9728)`, {
      class: "refused",
      hint: "a server of the MCP revision 2025-03-26 is reached with legacyDiscovery; discover() reports what was asked",
      remedy: { action: "allow", option: "legacyDiscovery" },
    });
  }
  const issuer = await legacyIssuer(url, () =>
    read({ http, issuer: origin, policy: policyOf(origin), mutualTls: context.mutualTls, trace, signal }),
  );
  return { server, challenge: received, resource: undefined, issuer };
}

function hasCrossOriginOverride({ remembered }: OverrideContext): boolean {
  return remembered?.overrides.includes("allowCrossOriginMetadata") === true;
}

/**
 * The issuers that may be used. An earlier login allowed metadata on another origin for the issuer that they named
 * then, and for no other: that origin may have a new owner today.
 */
function candidatesFor(
  context: DiscoveryContext,
  mcpUrl: string,
  { url, authorizationServers: named }: ResourceMetadata,
): readonly string[] {
  const { overrides, remembered } = context;
  const authorizationServers = expectIssuer(context, named, url);
  const isForeign = new URL(url).origin !== new URL(mcpUrl).origin;
  if (!isForeign || overrides.allowCrossOriginMetadata === true) return authorizationServers;
  const known = authorizationServers.filter((issuer) => issuer === remembered?.issuer);
  if (known.length > 0) return known;
  throw refused("bad_address", {
    field: "authorization_servers",
    value: authorizationServers,
    from: url,
    rule: `must name ${quote(remembered?.issuer)}, the issuer for which an earlier login allowed metadata on another origin (RFC 9728 section 7.3)`,
    override: "allowCrossOriginMetadata",
  });
}

/** The issuers that a server names, or the expected one of them. */
function expectIssuer({ expectedIssuer }: DiscoveryContext, named: readonly string[], from: string): readonly string[] {
  if (expectedIssuer === undefined) return named;
  if (!named.includes(expectedIssuer)) throw issuerMismatch(expectedIssuer, named, from);
  return [expectedIssuer];
}

async function firstUsable<T>(candidates: readonly string[], read: (candidate: string) => Promise<T>): Promise<T> {
  let first: unknown;
  for (const candidate of candidates) {
    try {
      return await read(candidate);
    } catch (error) {
      // An issuer that is down may be the right one: using the next one would be a guess.
      if (!isAgentAuthError(error) || error.class !== "refused") throw error;
      first ??= error;
    }
  }
  throw first;
}

/** A server of 2025-03-26: its origin is the issuer, and where it publishes nothing its endpoints have fixed paths. */
async function legacyIssuer<T>(mcpUrl: string, read: () => Promise<T>): Promise<T | ServerMetadata> {
  const { origin } = new URL(mcpUrl);
  try {
    return await read();
  } catch (error) {
    if (!isAgentAuthError(error) || error.code !== "no_server_metadata") throw error;
  }
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
