import { AgentAuthError, isAgentAuthError } from "../../errors.js";
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

/** The rules that the user may lift for a server, each by a flag of the same name. */
export interface Overrides {
  /** Go on where the server does not say that it does PKCE; S256 is sent all the same. */
  allowMissingPkceMetadata?: boolean | undefined;
  /** Follow a `resource_metadata` address to another origin than the MCP server's. */
  allowCrossOriginMetadata?: boolean | undefined;
  /**
   * Log in at an issuer whose authorization and token endpoints have different origins, though it does not promise `iss`
   * (RFC 9207). A `login` with `confirmEndpoints` asks the user instead.
   */
  allowCrossOriginEndpoints?: boolean | undefined;
  /** Take a server without metadata for one of the revision 2025-03-26: its origin is the issuer. */
  legacyDiscovery?: boolean | undefined;
  /** Let a server elsewhere lead to addresses of this machine and of private networks; never to link-local ones. */
  allowPrivateNetwork?: boolean | undefined;
  /** Let the resource be the very address that was asked, not a parent of it. */
  strictResource?: boolean | undefined;
  /**
   * Take no issuer that has endpoints elsewhere than at its own origin: what the user brings back from its page is then
   * sent to nobody else.
   */
  sameOriginEndpoints?: boolean | undefined;
}

/** What discovery depends on. */
export interface DiscoveryContext extends ServerConnection {
  timeoutMs: number;
  overrides: Overrides;
  /** The one issuer that the user takes, whatever a server names. */
  expectedIssuer?: string | undefined;
  /** Whether our requests to issuers show a client certificate. */
  mutualTls?: boolean | undefined;
  /** A login at the server that the user lifted rules for: they stay lifted for its issuer. */
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

/** The rules that are lifted for an issuer: by whoever calls, or by the user at an earlier login. */
export function overridesFor(issuer: string, { overrides, remembered }: OverrideContext): string[] {
  const before = remembered?.issuer === issuer ? remembered.overrides : [];
  return STORED_OVERRIDES.filter((name) => overrides[name] === true || before.includes(name));
}

type OverrideContext = Pick<DiscoveryContext, "overrides" | "remembered">;

// Asked for without a session: it is enough to be asked for a token, and some servers greet everybody.
const CHALLENGE_BODY = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });

/**
 * Asks the MCP server without a token, as any client does first, to be told what is missing.
 *
 * @returns the challenge; undefined when the answer has none
 * @throws `AgentAuthError` a network error
 */
async function requestChallenge(
  context: DiscoveryContext,
  mcpUrl: string,
  signal?: AbortSignal,
): Promise<BearerChallenge | undefined> {
  const call = follow(signal, context.timeoutMs, () => {
    return new AgentAuthError("timeout", `${new URL(mcpUrl).host}: no answer in ${context.timeoutMs / 1000} s`, {
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
    // Only the headers are of interest, and a stream would never end by itself.
    await response.body?.cancel().catch(() => undefined);
    const challenge =
      response.status === 401 || response.status === 403 ? bearerChallenge(response.headers) : undefined;
    const why = challenge ? "it asks for a bearer token" : "it does not ask for a bearer token explicitly";
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

/** For all of discovery: each request has its own limit, and a server that names many documents has many of those. */
const DISCOVERY_DEADLINE_MS = 30_000;

/**
 * Finds out who gives tokens for an MCP server: challenge, resource metadata (RFC 9728), server metadata (RFC 8414).
 * From the resource metadata on the MCP server itself is asked for nothing more.
 *
 * @param challenge the challenge of an answer that was already received; without it the server is asked
 * @throws `AgentAuthError` of class `refused` where a rule was broken, `unavailable` where a peer did not answer, or where
 * it took more than 30 s in all (`timeout`)
 */
export function discover(
  context: DiscoveryContext,
  mcpUrl: string,
  challenge: BearerChallenge | undefined,
  signal?: AbortSignal,
): Promise<Discovered> {
  return withDeadline(mcpUrl, signal, (own) => find(context, findServerMetadata, { mcpUrl, challenge, signal: own }));
}

/** {@link discover} for a client that needs nobody to log in: the issuer needs no more than a token endpoint. */
export function discoverIssuer(
  context: DiscoveryContext,
  mcpUrl: string,
  challenge: BearerChallenge | undefined,
  signal?: AbortSignal,
): Promise<Discovered<IssuerMetadata>> {
  return withDeadline(mcpUrl, signal, (own) => find(context, findIssuerMetadata, { mcpUrl, challenge, signal: own }));
}

/** The outcome of discovery within its deadline. */
async function withDeadline<T>(
  mcpUrl: string,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const seconds = DISCOVERY_DEADLINE_MS / 1000;
  const message = `discovery for ${quote(mcpUrl)} did not end in ${seconds} s`;
  const hint = "agentauth discover shows every address that was asked";
  const call = follow(
    signal,
    DISCOVERY_DEADLINE_MS,
    () => new AgentAuthError("timeout", message, { class: "unavailable", hint }),
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
  const met = challenge ?? (await requestChallenge(context, url, signal));
  // A token that was refused may have been so because the issuer is another now.
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
  const named = met?.resourceMetadata ?? [];
  const resource = await findResourceMetadata({ http, mcpUrl: url, named, policy, trace, signal });
  if (resource) {
    const issuer = await firstUsable(candidatesFor(context, url, resource), (candidate) =>
      read({ http, issuer: candidate, policy: policyOf(candidate), mutualTls: context.mutualTls, trace, signal }),
    );
    return { server, challenge: met, resource, issuer };
  }
  const { origin } = new URL(url);
  expectIssuer(context, [origin], url);
  if (!overridesFor(origin, context).includes("legacyDiscovery")) {
    throw new AgentAuthError("no_resource_metadata", `${quote(url)} does not say who gives tokens for it (RFC 9728)`, {
      class: "refused",
      hint: "a server of the MCP revision 2025-03-26 is reached with --legacy-discovery; agentauth discover shows what was asked",
    });
  }
  const issuer = await legacyIssuer(url, () =>
    read({ http, issuer: origin, policy: policyOf(origin), mutualTls: context.mutualTls, trace, signal }),
  );
  return { server, challenge: met, resource: undefined, issuer };
}

function hasCrossOriginOverride({ remembered }: OverrideContext): boolean {
  return remembered?.overrides.includes("allowCrossOriginMetadata") === true;
}

/**
 * The issuers that may be asked. Metadata on another origin were allowed at an earlier login for the issuer that they
 * named then, and for no other: they are as good as anything that whoever has that origin today wants to say.
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
    rule: `must name ${quote(remembered?.issuer)}, the issuer for which metadata on another origin were allowed before (RFC 9728 section 7.3)`,
    override: "--allow-cross-origin-metadata",
  });
}

/** The issuers that a server names, or of them the one that the user takes. */
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
      // One that is merely down may be the right one: going to the next would be a choice that nobody made.
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
    introspectionEndpoint: undefined,
    revocationEndpoint: undefined,
    endSessionEndpoint: undefined,
    deviceAuthorizationEndpoint: undefined,
    jwksUri: undefined,
    scopesSupported: undefined,
    grantTypesSupported: undefined,
    tokenEndpointAuthMethods: undefined,
    promisesIss: false,
    takesClientIdDocuments: false,
    url: mcpUrl,
  };
}
