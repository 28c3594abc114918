import { readBody } from "./body.js";
import { type Answer, type Exchange, json, type Part, Refusal } from "./exchange.js";
import { dueOf } from "./faults/controller.js";
import { handleMcp, REPORTS_SCOPE, REPORTS_TOOL } from "./mcp/handler.js";
import type { PoolServer } from "./oauth/pool-server.js";
import { MCP_PATH, type PoolServers } from "./oauth/pool-servers.js";
import type { TokenFacts } from "./oauth/verify.js";

/** What the MCP servers need. */
export interface McpSettings {
  origin: string;
  servers: PoolServers;
  /** What their metadata says of scopes; `undefined` says nothing. */
  scopesSupported: readonly string[] | undefined;
}

const METADATA = "/.well-known/oauth-protected-resource";
const MAX_BODY = 1024 * 1024;
const MAX_OPERATION = 100;

/** The protected MCP servers: `/mcp` of the first pool, `/mcp/{pool_id}` of every one, and their metadata. */
export function mcpPart(settings: McpSettings): Part {
  const { servers } = settings;
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
      const isMetadata = exchange.path.startsWith(METADATA);
      const path = isMetadata ? exchange.path.slice(METADATA.length) : exchange.path;
      const server = servers.findForMcp(path);
      if (!server) throw new Refusal(404, "not_found", "there is no such pool");
      return isMetadata ? metadata(settings, server, exchange, path) : answerMcp(settings, server, exchange);
    },
  };
}

function isMcp(path: string): boolean {
  return path === MCP_PATH || path.startsWith(`${MCP_PATH}/`);
}

function metadata({ origin, scopesSupported }: McpSettings, server: PoolServer, { method }: Exchange, path: string) {
  if (method !== "GET" && method !== "HEAD")
    throw new Refusal(405, "invalid_action", "use GET", { allow: "GET, HEAD" });
  return json({
    resource: origin + path,
    authorization_servers: [server.issuer],
    ...(scopesSupported && { scopes_supported: scopesSupported }),
  });
}

async function answerMcp({ origin }: McpSettings, server: PoolServer, exchange: Exchange): Promise<Answer> {
  const { path, request } = exchange;
  const documentUrl = origin + METADATA + path;
  const header = request.headersDistinct["authorization"] ?? [];
  const [, token] = /^bearer +(\S+) *$/i.exec(header[0] ?? "") ?? [];
  if (header.length !== 1 || token === undefined) return challenge(401, { resource_metadata: documentUrl });
  const facts = await acceptToken(server, token, origin + path);
  if (typeof facts === "string") {
    const error = { error: "invalid_token", error_description: facts, resource_metadata: documentUrl };
    return challenge(401, error);
  }
  const missing = requiredScopes(exchange).find((scope) => !facts.scopes.includes(scope));
  if (missing === undefined) return handleMcp(origin + path, exchange, { token, ...facts });
  return challenge(403, { error: "insufficient_scope", scope: missing, resource_metadata: documentUrl });
}

/** Holds a token against the first three rules of the service; why it is not accepted, else what it says. */
async function acceptToken(server: PoolServer, token: string, resource: string): Promise<TokenFacts | string> {
  const facts = await server.inspect(token);
  if (!facts) return "the token was not issued by the authorization server, or is not current";
  return facts.audience === resource ? facts : "the token was issued for another resource";
}

/** The fourth rule: the scopes that a request needs. */
function requiredScopes(exchange: Exchange): string[] {
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
function messagesOf({ body }: Exchange): Message[] {
  try {
    const parsed: unknown = JSON.parse(body?.toString("utf8") ?? "");
    return [parsed].flat().filter((entry): entry is Message => typeof entry === "object" && entry !== null);
  } catch {
    return [];
  }
}

function challenge(status: number, parameters: Record<string, string>): Answer {
  const text = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`);
  const { error = "unauthorized", error_description } = parameters;
  const answer = json({ error, ...(error_description !== undefined && { error_description }) }, status);
  return { ...answer, headers: { ...answer.headers, "www-authenticate": `Bearer ${text.join(", ")}` } };
}
