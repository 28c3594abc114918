import type { Authenticator, Scopes } from "./authenticator.js";
import type { Answer } from "./error-response.js";
import { answerMetadata, type Metadata } from "./metadata.js";
import { type AuthInfo, authInfoOf } from "./verified-token.js";

/** The part of a request of Node's `http`, Express or Connect that the middleware uses. */
export interface NodeRequest {
  /** The HTTP method. */
  method?: string | undefined;
  /** Path and query; a router may have removed its prefix. */
  url?: string | undefined;
  /** The path before a router removed its prefix. */
  originalUrl?: string | undefined;
  /** The headers, by their names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Names and values in turn, as sent. */
  rawHeaders?: readonly string[] | undefined;
  /** The verified token, in the form that the official MCP SDK reads here. */
  auth?: unknown;
}

/** The part of a response of Node's `http` that the middleware uses. */
export interface NodeResponse {
  /** The HTTP status to send. */
  statusCode: number;
  /** Sets a header. */
  setHeader(name: string, value: string): unknown;
  /** Sends the response. */
  end(body?: string): unknown;
}

/** A middleware for Express, Connect, or a handler of Node's `http`; it settles with the result of `next`. */
export type NodeMiddleware<R extends NodeRequest = NodeRequest> = (
  request: R,
  response: NodeResponse,
  next: (error?: unknown) => unknown,
) => Promise<void>;

/** Creates a middleware that admits only requests with a valid token, and serves the metadata to everyone. */
export function createMiddleware<R extends NodeRequest>(
  authenticator: Authenticator,
  metadata: Metadata,
  scopes: Scopes<R> | undefined,
): NodeMiddleware<R> {
  return async (request, response, next) => {
    let auth: AuthInfo | undefined;
    try {
      const { method = "GET", originalUrl, url: routedUrl = "/" } = request;
      const url = originalUrl ?? routedUrl;
      if (url.split("?")[0] === metadata.path) return write(response, answerMetadata(metadata, method));
      const [authorization, proof] = [valuesOf(request, "authorization"), valuesOf(request, "dpop")];
      const authenticated = await authenticator.authenticate({ authorization, proof, method, url }, request, scopes);
      if (authenticated.answer) return write(response, authenticated.answer);
      for (const [name, value] of Object.entries(authenticated.headers)) response.setHeader(name, value);
      auth = authInfoOf(authenticated.verified, metadata.document.resource);
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
