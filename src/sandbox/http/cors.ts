import type { IncomingMessage } from "node:http";
import type { SandboxResponse } from "./sandbox-response.js";

/** The response headers that an MCP client reads, beside those that every page may read. */
const EXPOSED = "WWW-Authenticate, Mcp-Session-Id, DPoP-Nonce, Retry-After";
const MAX_AGE_SECONDS = "600";

/** The origin of a request, if pages of that origin may use the sandbox. */
export function allowedOrigin(request: IncomingMessage, allowed: readonly string[]): string | undefined {
  const [origin = "", ...more] = request.headersDistinct["origin"] ?? [];
  return more.length === 0 && allowed.includes(origin) ? origin : undefined;
}

/** The headers with which a browser shows a response to a page of an origin. */
export function corsHeaders(origin: string): Readonly<Record<string, string>> {
  return { "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED, vary: "Origin" };
}

/** The response to the question of a browser whether a page may send a request; undefined for any other request. */
export function preflightAnswer({ method, headers }: IncomingMessage): SandboxResponse | undefined {
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) return undefined;
  const requested = headers["access-control-request-headers"];
  return {
    status: 200,
    headers: {
      "access-control-allow-methods": "GET, POST, DELETE",
      ...(requested !== undefined && { "access-control-allow-headers": requested }),
      "access-control-max-age": MAX_AGE_SECONDS,
    },
    body: "",
  };
}
