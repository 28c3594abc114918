import { systemClock } from "../../http/deadline.js";
import { type ResourceServer, resourceServerOf } from "../../resource-server/resource-server.js";
import type { Clock } from "../clock.js";
import { dueOf } from "../faults/controller.js";
import { readBody } from "../http/body.js";
import { type Answer, type Part, Refusal, type RoundTrip } from "../http/round-trip.js";
import { innerIssuer } from "../oauth/inner-issuer.js";
import { MCP_PATH, type PoolServers } from "../oauth/pool-servers.js";
import { handleMcp, REPORTS_SCOPE, REPORTS_TOOL } from "./handler.js";
import { answerOf, webRequest } from "./web-request.js";

/** What the MCP servers need. */
export interface McpSettings {
  origin: string;
  servers: PoolServers;
  clock: Clock;
  /** What their metadata says of scopes; `undefined` says nothing. */
  scopesSupported: readonly string[] | undefined;
  dpop: "off" | "supported" | "required";
  dpopNonces: boolean;
}

const METADATA = "/.well-known/oauth-protected-resource";
const MAX_BODY = 1024 * 1024;
const MAX_OPERATION = 100;

/** The protected MCP servers: `/mcp` of the first pool, `/mcp/{pool_id}` of every one, and their metadata. */
export function mcpPart(settings: McpSettings): Part {
  const resources = new Map<string, ResourceServer>();
  return {
    owns: (path) => isMcp(path) || (path.startsWith(METADATA) && isMcp(path.slice(METADATA.length))),
    faulty: true,
    unlogged: false,
    latency: 0,
    async target(exchange) {
      if (exchange.path.startsWith(METADATA)) return { endpoint: "prm" };
      exchange.body = await readBody(exchange.request, MAX_BODY);
      const method = messagesOf(exchange)[0]?.method;
      if (typeof method === "string") exchange.operation = method.slice(0, MAX_OPERATION);
      return { endpoint: "mcp", operation: exchange.operation };
    },
    handle(exchange) {
      const { path, method } = exchange;
      const isMetadata = path.startsWith(METADATA);
      if (isMetadata && method !== "GET" && method !== "HEAD") {
        throw new Refusal(405, "invalid_action", "use GET", { allow: "GET, HEAD" });
      }
      const mcpPath = isMetadata ? path.slice(METADATA.length) : path;
      const resource = resources.get(mcpPath) ?? createResource(settings, mcpPath);
      resources.set(mcpPath, resource);
      return answer(resource, settings.origin, exchange, isMetadata);
    },
  };
}

function isMcp(path: string): boolean {
  return path === MCP_PATH || path.startsWith(`${MCP_PATH}/`);
}

/** The MCP server at a path, protected as any other would be. @throws Refusal 404 where there is none */
function createResource(settings: McpSettings, path: string): ResourceServer {
  const { origin, servers, clock, scopesSupported, dpop, dpopNonces } = settings;
  const server = servers.findForMcp(path);
  if (!server) throw new Refusal(404, "not_found", "there is no such pool");
  return resourceServerOf(
    {
      resource: origin + path,
      authorizationServers: [server.issuer],
      scopesSupported,
      dpop,
      dpopNonces,
      // A clock that is put forward is to be exact, and what the issuer revokes is to end at once.
      clockSkew: 0,
      introspection: { authenticate: () => {}, cacheTtl: 0 },
      clock: { ...systemClock, epoch: () => clock.now() },
    },
    [innerIssuer(server)],
    // Clients write the machine's time into their proofs, wherever the sandbox's clock was put.
    { proofClock: systemClock },
  );
}

async function answer(
  resource: ResourceServer,
  origin: string,
  exchange: RoundTrip,
  isMetadata: boolean,
): Promise<Answer> {
  const handler = resource.protect((request, { authInfo }) => handleMcp(request, authInfo), {
    scopes: () => requiredScopes(exchange),
  });
  const given = await answerOf(await handler(webRequest(origin, exchange)));
  // A fault that strikes the metadata is to be seen by the next login, not by the one after the document has grown stale.
  return isMetadata ? { ...given, headers: { ...given.headers, "cache-control": "no-store" } } : given;
}

/** The fourth rule: the scopes that a request needs. */
function requiredScopes(exchange: RoundTrip): string[] {
  const calls = messagesOf(exchange).filter(({ method }) => method === "tools/call");
  const wanted = dueOf(exchange.due, "step-up")?.scope;
  const reports = calls.some(({ params }) => params?.name === REPORTS_TOOL) ? [REPORTS_SCOPE] : [];
  return wanted === undefined || calls.length === 0 ? reports : [wanted, ...reports];
}

interface Message {
  method?: unknown;
  params?: { name?: unknown } | null;
}

/** The messages in a body, read loosely: whether they are good is for the SDK to say. */
function messagesOf({ body }: RoundTrip): Message[] {
  try {
    const parsed: unknown = JSON.parse(body?.toString("utf8") ?? "");
    return [parsed].flat().filter((entry): entry is Message => typeof entry === "object" && entry !== null);
  } catch {
    return [];
  }
}
