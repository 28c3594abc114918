import type { Authenticator, Scopes } from "./authenticator.js";
import { responseOf } from "./error-response.js";
import { answerMetadata, type Metadata } from "./metadata.js";
import { type AuthInfo, authInfoOf, type VerifiedToken } from "./verified-token.js";

/** What a protected handler is told beside the request. */
export interface Admission {
  /** The token that was taken. */
  readonly verified: VerifiedToken;
  /** The same in the form in which the official MCP SDK takes it: `handler.fetch(request, { authInfo })`. */
  readonly authInfo: AuthInfo;
}

/** Answers requests whose token was taken. */
export type ProtectedHandler = (request: Request, admission: Admission) => Response | Promise<Response>;

/** What is needed of Hono's context. */
export interface HonoContext {
  /** The request, as `fetch` has it in `raw`. */
  req: { raw: Request };
  /** Keeps a value for the handlers that follow. */
  set(name: string, value: unknown): void;
  /** Sets a header of the answer. */
  header(name: string, value: string): void;
}

/** A middleware for Hono: it sets `auth` to the {@link Admission}. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>;

/** What came of looking at a request. */
type Met =
  | { response: Response; admission?: undefined }
  | { response?: undefined; admission: Admission; headers: readonly [name: string, value: string][] };

async function meet(
  gate: Authenticator,
  metadata: Metadata,
  request: Request,
  scopes: Scopes<Request> | undefined,
): Promise<Met> {
  const about = metadataResponse(metadata, request);
  if (about) return { response: about };
  const { method, url } = request;
  const valuesOf = (name: string) => [request.headers.get(name) ?? []].flat();
  const brought = { authorization: valuesOf("authorization"), proof: valuesOf("dpop"), method, url };
  const passed = await gate.authenticate(brought, request, scopes);
  if (passed.answer) return { response: responseOf(passed.answer) };
  const { verified, headers } = passed;
  const admission = { verified, authInfo: authInfoOf(verified, metadata.document.resource) };
  return { admission, headers: Object.entries(headers) };
}

/** The answer to a request for the metadata; undefined for any other. */
export function metadataResponse(metadata: Metadata, request: Request): Response | undefined {
  if (new URL(request.url).pathname !== metadata.path) return undefined;
  return responseOf(answerMetadata(metadata, request.method));
}

/** Makes a fetch-style handler that lets only requests with a good token through, and gives the metadata to everybody. */
export function createProtected(
  gate: Authenticator,
  metadata: Metadata,
  handler: ProtectedHandler,
  scopes: Scopes<Request> | undefined,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const met = await meet(gate, metadata, request, scopes);
    if (met.response) return met.response;
    return withHeaders(await handler(request, met.admission), met.headers);
  };
}

function withHeaders(response: Response, added: readonly [name: string, value: string][]): Response {
  if (added.length === 0) return response;
  try {
    for (const [name, value] of added) response.headers.set(name, value);
    return response;
  } catch {
    // The headers of an answer that was fetched cannot be changed.
    const headers = new Headers([...response.headers, ...added]);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
}

/** The same as a middleware for Hono. */
export function createHono(
  gate: Authenticator,
  metadata: Metadata,
  scopes: Scopes<Request> | undefined,
): HonoMiddleware {
  return async (context, next) => {
    const met = await meet(gate, metadata, context.req.raw, scopes);
    if (met.response) return met.response;
    context.set("auth", met.admission);
    await next();
    for (const [name, value] of met.headers) context.header(name, value);
    return undefined;
  };
}
