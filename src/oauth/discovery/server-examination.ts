import type { PeerPolicy } from "../../http/address-class.js";
import { untilAborted } from "../../http/deadline.js";
import type { ServerConnection } from "../http/server-connection.js";
import type { TraceEntry } from "../http/trace.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { ResourceMetadata } from "../model/metadata.js";
import { parseMcpUrl } from "../model/resource.js";
import {
  loginNotRequiredError,
  opennessOf,
  requestChallenge,
  type UnauthenticatedResponse,
} from "./challenge-request.js";
import type { IssuerExpectation } from "./issuer-choice.js";
import { readOnce } from "./look-ahead.js";
import type { ServerDiscovery } from "./metadata-rules.js";
import type { LoginFlowOptions } from "./overrides.js";
import { chosenResource, hasOverride, type OverrideContext } from "./overrides.js";
import { findResourceMetadata, rememberedMetadata } from "./resource-metadata.js";

export interface DiscoveryContext extends ServerConnection, OverrideContext, IssuerExpectation, LoginFlowOptions {
  timeoutMs: number;
  /** The option `resourceMetadata`: replaces the address that the server names. */
  resourceMetadata?: string | undefined;
  /** Whether requests to issuers present a client certificate. */
  mutualTls?: boolean | undefined;
  /** An earlier login at the server: its exceptions remain in force for its issuer. */
  remembered: OverrideContext["remembered"];
  trace: (entry: TraceEntry) => void;
}

/** What is known at the beginning of discovery. */
export interface Search {
  mcpUrl: string;
  challenge: BearerChallenge | undefined;
  /** The response to a request without a token, if it is there already. */
  first?: UnauthenticatedResponse;
  signal: AbortSignal;
}

/** What an MCP server says about itself. */
export interface ExaminedServer {
  /** Its address. */
  url: string;
  /** The same, canonical. */
  server: string;
  /** Its challenge to a request without a token. */
  challenge: BearerChallenge | undefined;
  response: Pick<UnauthenticatedResponse, "status" | "challenge" | "refused">;
  /** Its metadata; undefined for a server that has none. */
  resource: ResourceMetadata | undefined;
  /** Whether it answered that request, so that only an earlier login names the issuer. */
  isUnprotected: boolean;
  /** Whether no MCP server is at the address. */
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
export async function examineServer(
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
  const openness = isOpenable ? await opennessOf(context, url, first, signal) : "closed";
  const isUnprotected = openness === "open";
  if (isUnprotected && remembered === undefined) throw loginNotRequiredError(server);
  const resource = isUnprotected && remembered ? rememberedMetadata(remembered, url) : published;
  const response = first ?? { status: 401, challenge };
  return {
    url,
    server,
    challenge,
    response,
    resource,
    isUnprotected,
    isAbsent: openness === "absent",
    http,
    policy,
    signal,
  };
}
