import { isEventStream } from "../../http/buffered-response.js";
import { systemClock } from "../../http/deadline.js";
import type { Issuer } from "../../resource-server/issuer.js";
import { buildResourceServer, type ResourceServer } from "../../resource-server/resource-server.js";
import { findFault, type RoundTrip, type SandboxPart } from "../faults/controller.js";
import type { MovableClock } from "../http/clock.js";
import { parseJson, READ_METHODS, Refusal, readBody, requireMethod, type SandboxResponse } from "../http/requests.js";
import type { OAuthSettings } from "../oauth/issuer-settings.js";
import { readIntrospection } from "../oauth/keys.js";
import { MCP_PATH, type PoolServer, type PoolServers } from "../oauth/pool-server.js";
import {
  bufferResponse,
  type CreateMcpServer,
  type McpHandler,
  ownMcp,
  REPORTS_SCOPE,
  REPORTS_TOOL,
  sampleMcp,
  sendStream,
  webRequest,
} from "./own-server.js";

export interface McpSettings extends Pick<OAuthSettings, "scopesSupported" | "dpop" | "dpopNonces"> {
  origin: string;
  servers: PoolServers;
  clock: MovableClock;
  /** Creates the servers; `undefined` for the sample server. */
  mcpServer: CreateMcpServer | undefined;
  /** Resolves when the sandbox has closed. */
  closed: Promise<void>;
}

const METADATA = "/.well-known/oauth-protected-resource";
const MAX_BODY = 1024 * 1024;
const MAX_OPERATION = 100;

/** The protected MCP servers: `/mcp` of the first pool, `/mcp/{pool_id}` of every one, and their metadata. */
export function mcpPart(settings: McpSettings): SandboxPart {
  const resources = new Map<string, ResourceServer>();
  const handle = settings.mcpServer ? ownMcp(settings.mcpServer, settings.closed) : sampleMcp;
  return {
    owns: (path) => isMcp(path) || (path.startsWith(METADATA) && isMcp(path.slice(METADATA.length))),
    faulty: true,
    allowsPages: () => true,
    async target(roundTrip) {
      if (roundTrip.path.startsWith(METADATA)) return { endpoint: "prm" };
      roundTrip.body = await readBody(roundTrip.request, MAX_BODY);
      const method = readMessages(roundTrip)[0]?.method;
      if (typeof method === "string") roundTrip.operation = method.slice(0, MAX_OPERATION);
      return { endpoint: "mcp", operation: roundTrip.operation };
    },
    handle(roundTrip) {
      const { path, method } = roundTrip;
      const isMetadata = path.startsWith(METADATA);
      if (isMetadata) requireMethod(method, READ_METHODS);
      const mcpPath = isMetadata ? path.slice(METADATA.length) : path;
      const resource = resources.get(mcpPath) ?? createResource(settings, mcpPath);
      resources.set(mcpPath, resource);
      const request = webRequest(settings.origin, roundTrip);
      return isMetadata
        ? respondWithMetadata(resource, request)
        : respondToRequest(resource, request, roundTrip, handle);
    },
  };
}

function isMcp(path: string): boolean {
  return path === MCP_PATH || path.startsWith(`${MCP_PATH}/`);
}

/** The MCP server at a path, protected with our resource server. @throws Refusal 404 where there is none */
function createResource(settings: McpSettings, path: string): ResourceServer {
  const { origin, servers, clock, scopesSupported, dpop, dpopNonces } = settings;
  const server = servers.findForMcp(path);
  if (!server) throw new Refusal(404, "not_found", "there is no such pool");
  return buildResourceServer(
    {
      resource: origin + path,
      authorizationServers: [server.issuer],
      scopesSupported,
      dpop,
      dpopNonces,
      // A clock that was moved must be exact, and a revoked token must be rejected at once.
      clockSkewSeconds: 0,
      introspection: { authenticate: () => {}, cacheTtlSeconds: 0 },
      clock: { ...systemClock, epoch: () => clock.now() },
    },
    [localIssuer(server)],
    // Clients write the machine's time into their proofs, wherever the sandbox's clock was moved.
    { proofClock: systemClock },
  );
}

/**
 * The authorization server of a pool as its MCP servers see it. They call it inside the process: no fault strikes these
 * calls, and the request log does not contain them.
 */
function localIssuer(server: PoolServer): Issuer {
  return {
    issuer: server.issuer,
    async keys() {
      const { answer } = await server.run();
      const { body } = await answer({ method: "GET", url: "/jwks", headers: {}, body: Buffer.alloc(0) });
      return JSON.parse(body.toString()) as Record<string, unknown>;
    },
    async introspect(token) {
      const found = await server.inspect(token);
      return found ? readIntrospection(found) : { active: false };
    },
  };
}

async function respondWithMetadata(resource: ResourceServer, request: Request): Promise<SandboxResponse> {
  const { headers, ...whole } = await bufferResponse(resource.handleMetadata(request) as Response);
  // The next login must see a fault of the metadata, not the login after a cached document expires.
  return { ...whole, headers: { ...headers, "cache-control": "no-store" } };
}

async function respondToRequest(
  resource: ResourceServer,
  request: Request,
  roundTrip: RoundTrip,
  handle: McpHandler,
): Promise<SandboxResponse | undefined> {
  const scopes = () => requiredScopes(roundTrip);
  const response = await resource.protect((admitted, { authInfo }) => handle(admitted, authInfo), { scopes })(request);
  // A delivery fault needs the whole body, and a step-up needs none of it.
  const isWhole = roundTrip.method === "POST" && roundTrip.faults.some(({ kind }) => kind !== "step-up");
  if (!isEventStream(response) || isWhole) return bufferResponse(response);
  sendStream(response, roundTrip.response);
  return undefined;
}

function requiredScopes(roundTrip: RoundTrip): string[] {
  const calls = readMessages(roundTrip).filter(({ method }) => method === "tools/call");
  const stepUp = findFault(roundTrip.faults, "step-up")?.scope;
  const reports = calls.some(({ params }) => params?.name === REPORTS_TOOL) ? [REPORTS_SCOPE] : [];
  return stepUp === undefined || calls.length === 0 ? reports : [stepUp, ...reports];
}

interface Message {
  method?: unknown;
  params?: { name?: unknown } | null;
}

/** The messages in a body, not validated: the SDK does that. */
function readMessages({ body }: RoundTrip): Message[] {
  const parsed = [parseJson(body?.toString("utf8") ?? "")].flat();
  return parsed.filter((entry): entry is Message => typeof entry === "object" && entry !== null);
}
