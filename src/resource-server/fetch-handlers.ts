import type { Authenticator, Scopes } from "./authenticator.js";
import { responseOf } from "./error-response.js";
import { answerMetadata, type Metadata } from "./metadata.js";
import { type AuthInfo, authInfoOf, type VerifiedToken } from "./verified-token.js";

/** What a protected handler receives beside the request. */
export interface Admission {
  /** The verified token. */
  readonly verified: VerifiedToken;
  /** The same in the form of the official MCP SDK: `handler.fetch(request, { authInfo })`. */
  readonly authInfo: AuthInfo;
}

/** Handles requests with a valid token. */
export type ProtectedHandler = (request: Request, admission: Admission) => Response | Promise<Response>;

/** The part of Hono's context that the middleware uses. */
export interface HonoContext {
  /** The request, as `fetch` has it in `raw`. */
  req: { raw: Request };
  /** Stores a value for later handlers. */
  set(name: string, value: unknown): void;
  /** Sets a header of the response. */
  header(name: string, value: string): void;
}

/** A middleware for Hono: it sets `auth` to the {@link Admission}. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>;

/** The response to a request that is not admitted, or its admission. */
type AdmissionResult =
  | { response: Response; admission?: undefined }
  | { response?: undefined; admission: Admission; headers: readonly [name: string, value: string][] };

async function admit(
  authenticator: Authenticator,
  metadata: Metadata,
  request: Request,
  scopes: Scopes<Request> | undefined,
): Promise<AdmissionResult> {
  const metadataReply = metadataResponse(metadata, request);
  if (metadataReply) return { response: metadataReply };
  const { method, url } = request;
  const valuesOf = (name: string) => [request.headers.get(name) ?? []].flat();
  const presented = { authorization: valuesOf("authorization"), proof: valuesOf("dpop"), method, url };
  const authenticated = await authenticator.authenticate(presented, request, scopes);
  if (authenticated.answer) return { response: responseOf(authenticated.answer) };
  const { verified, headers } = authenticated;
  const admission = { verified, authInfo: authInfoOf(verified, metadata.document.resource) };
  return { admission, headers: Object.entries(headers) };
}

/** The response to a request for the metadata; undefined for any other. */
export function metadataResponse(metadata: Metadata, request: Request): Response | undefined {
  if (new URL(request.url).pathname !== metadata.path) return undefined;
  return responseOf(answerMetadata(metadata, request.method));
}

/** Creates a fetch-style handler that admits only requests with a valid token, and serves the metadata to everyone. */
export function createProtected(
  authenticator: Authenticator,
  metadata: Metadata,
  handler: ProtectedHandler,
  scopes: Scopes<Request> | undefined,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const result = await admit(authenticator, metadata, request, scopes);
    if (result.response) return result.response;
    return withHeaders(await handler(request, result.admission), result.headers);
  };
}

function withHeaders(response: Response, added: readonly [name: string, value: string][]): Response {
  if (added.length === 0) return response;
  try {
    for (const [name, value] of added) response.headers.set(name, value);
    return response;
  } catch {
    // The headers of a fetched response are immutable.
    const headers = new Headers([...response.headers, ...added]);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
}

/** The same as a middleware for Hono. */
export function createHono(
  authenticator: Authenticator,
  metadata: Metadata,
  scopes: Scopes<Request> | undefined,
): HonoMiddleware {
  return async (context, next) => {
    const result = await admit(authenticator, metadata, context.req.raw, scopes);
    if (result.response) return result.response;
    context.set("auth", result.admission);
    await next();
    for (const [name, value] of result.headers) context.header(name, value);
    return undefined;
  };
}
