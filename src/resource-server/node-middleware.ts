import type { Authenticator, Scopes } from "./authenticator.js";
import type { Answer } from "./error-response.js";
import { answerMetadata, type Metadata } from "./metadata.js";
import { type AuthInfo, authInfoOf } from "./verified-token.js";

/** What is needed of a request of Node's `http`, of Express or Connect. */
export interface NodeRequest {
  /** The HTTP method. */
  method?: string | undefined;
  /** Path and query, as a router has left them. */
  url?: string | undefined;
  /** The path before a router took its own part away. */
  originalUrl?: string | undefined;
  /** The headers, by their names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Names and values in turn, as they were sent. */
  rawHeaders?: readonly string[] | undefined;
  /** The token that was taken, in the form that the official MCP SDK looks for here. */
  auth?: unknown;
}

/** What is needed of a response of Node's `http`. */
export interface NodeResponse {
  /** The HTTP status that is going to be sent. */
  statusCode: number;
  /** Sets a header. */
  setHeader(name: string, value: string): unknown;
  /** Sends the answer. */
  end(body?: string): unknown;
}

/** A middleware for Express, Connect, or a handler of Node's `http`; it settles with what `next` gave back. */
export type NodeMiddleware<R extends NodeRequest = NodeRequest> = (
  request: R,
  response: NodeResponse,
  next: (error?: unknown) => unknown,
) => Promise<void>;

/** Makes a middleware that lets only requests with a good token through, and gives the metadata to everybody. */
export function createMiddleware<R extends NodeRequest>(
  gate: Authenticator,
  metadata: Metadata,
  scopes: Scopes<R> | undefined,
): NodeMiddleware<R> {
  return async (request, response, next) => {
    let auth: AuthInfo | undefined;
    try {
      const { method = "GET", originalUrl, url: left = "/" } = request;
      const url = originalUrl ?? left;
      if (url.split("?")[0] === metadata.path) return write(response, answerMetadata(metadata, method));
      const [authorization, proof] = [valuesOf(request, "authorization"), valuesOf(request, "dpop")];
      const passed = await gate.authenticate({ authorization, proof, method, url }, request, scopes);
      if (passed.answer) return write(response, passed.answer);
      for (const [name, value] of Object.entries(passed.headers)) response.setHeader(name, value);
      auth = authInfoOf(passed.verified, metadata.document.resource);
    } catch (error) {
      return void next(error);
    }
    request.auth = auth;
    await next();
  };
}

/** Every value of a header: of several, `headers` keeps the first and hides the others, or joins them. */
function valuesOf({ headers, rawHeaders }: NodeRequest, name: string): string[] {
  if (!rawHeaders) return [headers[name] ?? []].flat();
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
}

function write(response: NodeResponse, { status, headers, body }: Answer): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.end(body);
}
