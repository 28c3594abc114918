import { responseOf } from "./answer.js";
import type { Gate, Scopes } from "./gate.js";
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
}

/** A middleware for Hono: it sets `auth` to the {@link Admission}. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>;

/** What came of looking at a request. */
type Met = { response: Response; admission?: undefined } | { response?: undefined; admission: Admission };

async function meet(
  gate: Gate,
  metadata: Metadata,
  request: Request,
  scopes: Scopes<Request> | undefined,
): Promise<Met> {
  const about = metadataResponse(metadata, request);
  if (about) return { response: about };
  const value = request.headers.get("authorization");
  const { verified, answer } = await gate.pass(value === null ? [] : [value], request, scopes);
  if (answer) return { response: responseOf(answer) };
  return { admission: { verified, authInfo: authInfoOf(verified, metadata.document.resource) } };
}

/** The answer to a request for the metadata; undefined for any other. */
export function metadataResponse(metadata: Metadata, request: Request): Response | undefined {
  if (new URL(request.url).pathname !== metadata.path) return undefined;
  return responseOf(answerMetadata(metadata, request.method));
}

/** Makes a fetch-style handler that lets only requests with a good token through, and gives the metadata to everybody. */
export function createProtected(
  gate: Gate,
  metadata: Metadata,
  handler: ProtectedHandler,
  scopes: Scopes<Request> | undefined,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const { response, admission } = await meet(gate, metadata, request, scopes);
    return response ?? handler(request, admission);
  };
}

/** The same as a middleware for Hono. */
export function createHono(gate: Gate, metadata: Metadata, scopes: Scopes<Request> | undefined): HonoMiddleware {
  return async (context, next) => {
    const { response, admission } = await meet(gate, metadata, context.req.raw, scopes);
    if (response) return response;
    context.set("auth", admission);
    await next();
    return undefined;
  };
}
