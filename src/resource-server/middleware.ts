import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { ChallengeContext, Metadata, Reply } from "./challenge.js";
import { askForToken, buildErrorReply, buildMetadataReply } from "./challenge.js";
import { type AuthInfo, toAuthInfo, type VerifiedToken } from "./claims.js";
import type { Dpop, Presentation } from "./dpop.js";
import { type ResourceServerSettings, readScopes } from "./options.js";
import { type Credentials, readCredentials, TokenRefusal, tokenRefusalError } from "./refusal.js";
import type { TokenVerifier } from "./verifier.js";

/** Scopes, or a function that returns those that a request with a valid token needs. */
export type Scopes<R> = readonly string[] | ((request: R) => readonly string[] | Promise<readonly string[]>);

/** The credentials of a request, from any kind of server. */
export interface PresentedRequest extends Pick<Presentation, "method" | "url"> {
  authorization: readonly string[];
  proof: readonly string[];
}

/** The result: a verified token, and headers for the response to the request; or the response to send instead. */
export type Authenticated =
  | { verified: VerifiedToken; headers: Readonly<Record<string, string>>; reply?: undefined }
  | { verified?: undefined; headers?: undefined; reply: Reply };

/** The options of `verify`. */
export interface VerifyOptions {
  /** The scopes that the token must have beside `requiredScopes`. */
  scopes?: readonly string[] | undefined;
  /** How the token was presented. Without it, it is a bearer token: one that is bound to a key is refused. */
  presented?: Presentation | undefined;
  /** Aborts the verification. */
  signal?: AbortSignal | undefined;
}

export interface Authenticator {
  /** The metadata of the resource server, which challenges name. */
  readonly metadata: Metadata;
  /**
   * Verifies a token and its scopes.
   *
   * @throws `AgentAuthError` `not_authenticated`, `invalid_token`, `invalid_dpop_proof`, `use_dpop_nonce`,
   * `insufficient_scope`, or one of class `unavailable`
   */
  verify(token: string, options: VerifyOptions): Promise<VerifiedToken>;
  authenticate<R>(presented: PresentedRequest, request: R, scopes: Scopes<R> | undefined): Promise<Authenticated>;
}

/** The presentation of a token without further information. */
const BEARER: Presentation = { scheme: "Bearer", method: "GET", url: "/" };
const NO_TOKEN = "there is no access token to verify";

/** Checked at run time: a program may pass on a header that a request does not have. */
const isToken = (token: unknown): boolean => typeof token === "string" && token.trim() !== "";

export function createAuthenticator(
  verifyToken: TokenVerifier,
  dpop: Dpop,
  { requiredScopes, log }: ResourceServerSettings,
  metadata: Metadata,
): Authenticator {
  const { acceptedSchemes } = dpop;
  const withRequired = (scopes: readonly string[]) => [
    ...new Set([...requiredScopes, ...readScopes("scopes", scopes)]),
  ];
  const requireScopes = (verified: VerifiedToken, scopes: readonly string[]): VerifiedToken => {
    const missing = scopes.filter((scope) => !verified.scopes.includes(scope));
    if (missing.length === 0) return verified;
    log({ type: "refused", reason: "scope", detail: `the token lacks ${quote(missing.join(" "))}` });
    const message = `the access token lacks scopes: ${quote(scopes.join(" "))} are needed`;
    throw new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403 });
  };
  /** The token of the headers; undefined where there is none. */
  const read = (values: readonly string[]): Credentials | undefined => {
    try {
      return readCredentials(values, acceptedSchemes);
    } catch (error) {
      if (!(error instanceof TokenRefusal)) throw error;
      log({ type: "refused", reason: error.reason, detail: error.message });
      if (error.reason === "missing") return undefined;
      throw tokenRefusalError(error.reason);
    }
  };
  return {
    metadata,
    async verify(token, { scopes = [], presented = BEARER, signal }) {
      if (!isToken(token)) {
        log({ type: "refused", reason: "missing", detail: "no token" });
        throw new AgentAuthError("not_authenticated", NO_TOKEN, { class: "auth", status: 401 });
      }
      const { verified } = await verifyToken(token, presented, signal);
      return requireScopes(verified, withRequired(scopes));
    },
    async authenticate({ authorization, ...presented }, request, scopes) {
      const [scheme = "Bearer"] = acceptedSchemes;
      const nonce = await dpop.nonce();
      const fixed = withRequired(typeof scopes === "function" ? [] : (scopes ?? []));
      const context: ChallengeContext = { metadataUrl: metadata.url, acceptedSchemes, scheme, nonce, scopes: fixed };
      try {
        const credentials = read(authorization);
        if (!credentials) return { reply: askForToken(context) };
        context.scheme = credentials.scheme;
        const presentation = { ...presented, ...credentials };
        const { verified, isNonceOld } = await verifyToken(credentials.token, presentation, undefined);
        if (typeof scopes === "function") context.scopes = withRequired(await scopes(request));
        const headers = isNonceOld && nonce !== undefined ? { "dpop-nonce": nonce } : {};
        return { verified: requireScopes(verified, context.scopes), headers };
      } catch (error) {
        const reply = buildErrorReply(error, context);
        if (!reply) throw error;
        return { reply: reply };
      }
    },
  };
}

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

/** A middleware for Hono: it sets `auth` to the MCP SDK's {@link AuthInfo}, which `@hono/mcp` reads, and `verified`. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>;

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

/** The response to a request that is not admitted, or its admission. */
async function admit(authenticator: Authenticator, request: Request, scopes: Scopes<Request> | undefined) {
  const metadataReply = metadataResponse(authenticator.metadata, request);
  if (metadataReply) return { response: metadataReply };
  const { method, url } = request;
  const headerValues = (name: string) => [request.headers.get(name) ?? []].flat();
  const presented = { authorization: headerValues("authorization"), proof: headerValues("dpop"), method, url };
  const { reply, verified, headers } = await authenticator.authenticate(presented, request, scopes);
  if (reply) return { response: toResponse(reply) };
  const authInfo = toAuthInfo(verified, authenticator.metadata.document.resource);
  return { admission: { verified, authInfo }, headers: Object.entries(headers) };
}

/** The response to a request for the metadata; undefined for any other. */
export function metadataResponse(metadata: Metadata, request: Request): Response | undefined {
  if (new URL(request.url).pathname !== metadata.path) return undefined;
  return toResponse(buildMetadataReply(metadata, request.method));
}

function toResponse({ status, headers, body }: Reply): Response {
  return new Response(status === 204 ? null : body, { status, headers });
}

/** Creates a fetch-style handler that admits only requests with a valid token, and serves the metadata to everyone. */
export function createProtected(
  authenticator: Authenticator,
  handler: ProtectedHandler,
  scopes: Scopes<Request> | undefined,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const result = await admit(authenticator, request, scopes);
    if (result.response) return result.response;
    return withHeaders(await handler(request, result.admission), result.headers);
  };
}

function withHeaders(response: Response, added: readonly [name: string, value: string][]): Response {
  try {
    for (const [name, value] of added) response.headers.set(name, value);
    return response;
  } catch {
    // The headers of a fetched response are immutable.
    const headers = new Headers([...response.headers, ...added]);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
}

export function createHono(authenticator: Authenticator, scopes: Scopes<Request> | undefined): HonoMiddleware {
  return async (context, next) => {
    const result = await admit(authenticator, context.req.raw, scopes);
    if (result.response) return result.response;
    context.set("auth", result.admission.authInfo);
    context.set("verified", result.admission.verified);
    await next();
    for (const [name, value] of result.headers) context.header(name, value);
    return undefined;
  };
}

/** The same as a middleware for Express, Connect and Node's `http`. */
export function createMiddleware<R extends NodeRequest>(
  authenticator: Authenticator,
  scopes: Scopes<R> | undefined,
): NodeMiddleware<R> {
  const { metadata } = authenticator;
  return async (request, response, next) => {
    try {
      const { method = "GET", originalUrl, url: routedUrl = "/" } = request;
      const url = originalUrl ?? routedUrl;
      if (url.split("?")[0] === metadata.path) return write(response, buildMetadataReply(metadata, method));
      const [authorization, proof] = [valuesOf(request, "authorization"), valuesOf(request, "dpop")];
      const presented = { authorization, proof, method, url };
      const { reply, verified, headers } = await authenticator.authenticate(presented, request, scopes);
      if (reply) return write(response, reply);
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      request.auth = toAuthInfo(verified, metadata.document.resource);
    } catch (error) {
      return void next(error);
    }
    await next();
  };
}

/** Every value of a header: of several, `headers` keeps the first and hides the others, or joins them. */
function valuesOf({ headers, rawHeaders }: NodeRequest, name: string): string[] {
  if (!rawHeaders) return [headers[name] ?? []].flat();
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
}

function write(response: NodeResponse, { status, headers, body }: Reply): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.end(body);
}
