import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isPathWithin } from "../../http/address.js";
import { isRepeatable } from "../../http/body-content.js";
import { discardBody } from "../../http/buffered-response.js";
import type { Cookies } from "../../http/cookies.js";
import { HttpHeaders } from "../../http/http-headers.js";
import { HttpRequest, normalizeMethod } from "../../http/http-request.js";
import { isSessionUnknown } from "../../http/lost-session.js";
import { isRequest, isResponse } from "../../http/own-fetch.js";
import { type OriginReply, sendWithinOrigin } from "../../http/redirect.js";
import { quote, type Secret } from "../../redact.js";
import { noResourceMetadata } from "../discovery/resource-metadata.js";
import { proverFor } from "../dpop/dpop.js";
import type { Nonces, Prover } from "../http/http.js";
import { bearerChallenge } from "../model/challenge.js";
import type { Grant } from "../model/grant.js";
import {
  chooseRecovery,
  recoverToken,
  redirectedToLogin,
  type ServerTokens,
  saysTokenRejected,
  tokenTooLarge,
} from "./rejected-token.js";

/** What `AgentClient.fetch` takes beside the options of `fetch`. */
export interface AgentRequestInit extends RequestInit {
  /** The MCP server whose token the request carries, if the address is below that of the server. Default: the address. */
  server?: string | undefined;
  /** The scopes that the token must have, separated by blanks. */
  scope?: string | undefined;
  /** Whether to log in if needed. Default: true if the client has a `login` method. */
  login?: boolean | undefined;
  /** Gets each token right before it is sent, such as to mask it in what the server answers. */
  onToken?: ((token: Secret) => void) | undefined;
  /** With the `redirect` mode `manual`: whether a redirect to an address of the origin is followed. Default: none is. */
  mayFollow?: ((target: string) => boolean) | undefined;
}

/** What `fetch` needs from its agent. */
export interface FetchContext extends ServerTokens {
  /** The `fetch` for requests to a server, with the token of a grant if there is one. */
  fetchFor(url: string, grant: Grant | undefined): typeof globalThis.fetch;
  /** The cookies of the server for a grant, or for requests without one. */
  cookiesFor(url: string, grant: Grant | undefined): Cookies;
  /** DPoP nonces of the servers. */
  nonces: Nonces;
  /** The `User-Agent` of requests that have none. */
  userAgent: string;
}

/**
 * Sends a request with the token of its server. Each recovery is tried once: a rejected token is refreshed, then replaced
 * by a new login; missing scopes are requested. If the server still rejects the request, its response is returned.
 */
export async function fetchWithToken(
  tokens: FetchContext,
  input: string | URL | Request,
  { server: named, scope, login, onToken, mayFollow, ...init }: AgentRequestInit,
): Promise<Response> {
  const context = { ...tokens, mayLogin: (grant: Grant) => tokens.mayLogin(grant, login) };
  const signal = init.signal ?? (isRequest(input) ? input.signal : undefined) ?? undefined;
  const replay = toReplay(input, { init, mayFollow, userAgent: context.userAgent });
  const { url } = replay;
  const server = named === undefined ? url : serverOf(named, url);
  const options = { signal, login, ...(scope !== undefined && { scope }) };
  const first = (await context.grant(server, options)) ?? (await sendWithout(context, replay, server, options));
  if (isResponse(first)) return first;
  let grant = first;
  const tried = { refresh: false, login: false, stepUp: false };
  for (;;) {
    onToken?.(grant.tokens.accessToken);
    const { response, refused } = await sendWithToken(context, replay, grant);
    // The response of another server after a redirect says nothing about this server's token.
    if (response.redirected && new URL(response.url).origin !== new URL(url).origin) return response;
    if (response.status === 401 && (await isSessionUnknown(response, replay.headers()))) return response;
    const tooLarge = await tokenTooLarge(response, grant);
    if (tooLarge !== undefined) await discardBody(response);
    if (tooLarge !== undefined) throw tooLarge;
    const challenge = bearerChallenge(response.headers);
    const isRejected = await saysTokenRejected(response, replay);
    const rejection = { status: isRejected ? 401 : response.status, challenge, grant, tried };
    const recovery = await orDiscard(response, () => chooseRecovery(rejection, context));
    if (recovery === undefined && refused === undefined) return response;
    await discardBody(response);
    if (recovery === undefined) throw isRejected ? redirectedToLogin(grant, refused) : refused;
    replay.require();
    grant = await recoverToken(context, recovery, { ...rejection, signal });
  }
}

/** Sends a request without a token. @returns the response, or the grant to send it with if it was rejected */
async function sendWithout(
  context: FetchContext,
  replay: Replay,
  server: string,
  options: { signal: AbortSignal | undefined; login: boolean | undefined; scope?: string },
): Promise<Response | Grant> {
  const { response, refused } = await sendWithToken(context, replay, undefined);
  const { status } = response;
  const challenge = bearerChallenge(response.headers);
  const isNamed = status >= 300 && (challenge?.resourceMetadata.length ?? 0) > 0;
  const isRejected = status === 401 || (status === 403 && challenge !== undefined) || isNamed;
  if (refused !== undefined && !isRejected) await discardBody(response);
  if (refused !== undefined && !isRejected) throw refused;
  if (!isRejected || response.redirected) return response;
  context.onRejected(server);
  return orDiscard(response, async () => {
    const grant = await context.grant(server, { ...options, challenge }).catch((error: unknown) => {
      throw isLoginUnknown(error) && challenge?.resourceMetadata.length === 0
        ? noResourceMetadata(server, { status, challenge })
        : error;
    });
    if (grant === undefined) return response;
    await discardBody(response);
    replay.require();
    return grant;
  });
}

/** Runs what decides about a response; if that throws, nobody reads the body, which would occupy its connection. */
async function orDiscard<T>(response: Response, decide: () => T | Promise<T>): Promise<T> {
  try {
    return await decide();
  } catch (error) {
    await discardBody(response);
    throw error;
  }
}

/** The server whose token a request carries. @throws `TypeError` if the address is not below it */
function serverOf(server: string, url: string): string {
  const [base, target] = [new URL(server), new URL(url)];
  if (base.origin === target.origin && isPathWithin(target.pathname, base.pathname)) return server;
  throw new TypeError(`the option server is ${quote(server)}, and the address ${quote(url)} is not below it`);
}

/** Whether a login is required that would find out no more than the request did. */
function isLoginUnknown(error: unknown): boolean {
  return isAgentAuthError(error, "login_required") && error.status === undefined;
}

/** A response to a request with a token, and why a redirect in it was not followed. */
type SentReply = Pick<OriginReply<unknown>, "refused"> & { response: Response };

/**
 * Sends a request with a grant's token: as a bearer token, or with a DPoP proof if the token is bound to a key; without
 * a grant, without a token. Redirects are followed within the origin only, because the request is for its server.
 */
async function sendWithToken(context: FetchContext, replay: Replay, grant: Grant | undefined): Promise<SentReply> {
  const { method, url, mayFollow = () => false } = replay;
  const send = context.fetchFor(url, grant);
  const token = grant?.tokens.accessToken.reveal();
  const prover = grant && proverFor(grant, context.nonces);
  // fetch sends the Authorization header to the same origin only.
  if (!prover && replay.mayFollow === undefined && hasOnlyPublicHeaders(replay))
    return { response: await send(...replay.next(buildBearerHeaders(token))), refused: undefined };
  const cookies = context.cookiesFor(url, grant);
  // A browser does not show the target of a redirect.
  const redirect = replay.redirect === "follow" ? "manual" : replay.redirect;
  const sendTo = async (target: string, hop: number, more: Record<string, string>) => {
    for (let isRetry = false; ; isRetry = true) {
      if (hop > 0 || isRetry) replay.require();
      const previousNonce = prover?.nonces.get(target);
      // A proof is for one address, so every hop needs its own.
      const headers = { ...more, ...(await buildTokenHeaders(token, prover, { method, url: target })) };
      const response = await send(...replay.next(headers, { redirect }, hop === 0 ? undefined : target));
      prover?.nonces.learn(target, response.headers);
      // If the server requires a nonce in the proof (RFC 9449 section 9), the request is repeated once. Another request
      // may have received the nonce in the meantime.
      const isNew = prover !== undefined && prover.nonces.get(target) !== previousNonce;
      if (isRetry || !isNew || !isNonceChallenge(response)) return { response };
      await discardBody(response);
    }
  };
  const follows = replay.redirect === "follow";
  const ownCookie = replay.headers().get("cookie");
  const request = { method, url, mayRepeat: true, mayFollow: follows ? undefined : mayFollow, cookies, ownCookie };
  const { reply, refused } = await sendWithinOrigin(request, sendTo);
  return { ...reply, refused: follows ? refused : undefined };
}

/** Headers without private data. */
const PUBLIC_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "if-modified-since",
  "if-none-match",
  "pragma",
  "range",
  "user-agent",
]);

/** Whether any server that this one redirects to may see the request without its token. */
function hasOnlyPublicHeaders(replay: Replay): boolean {
  if (replay.method !== "GET" && replay.method !== "HEAD") return false;
  return [...replay.headers().keys()].every((name) => name === "authorization" || PUBLIC_HEADERS.has(name));
}

function buildBearerHeaders(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

async function buildTokenHeaders(
  token: string | undefined,
  prover: Prover | undefined,
  request: { method: string; url: string },
): Promise<Record<string, string>> {
  if (!prover || token === undefined) return buildBearerHeaders(token);
  return { authorization: `DPoP ${token}`, dpop: await prover.proof(request, token) };
}

function isNonceChallenge(response: Response): boolean {
  return response.status === 401 && bearerChallenge(response.headers)?.error === "use_dpop_nonce";
}

/** A request that can be sent several times, if its body allows. */
interface Replay {
  /** The address. */
  readonly url: string;
  /** The method, as sent. */
  readonly method: string;
  /** Which redirects inside the origin are followed although the mode is manual. */
  readonly mayFollow: AgentRequestInit["mayFollow"];
  /** The caller's redirect mode. */
  readonly redirect: NonNullable<RequestInit["redirect"]>;
  headers(): HttpHeaders;
  /** The arguments for `fetch`, with additional headers, options and another address. */
  next(headers: Record<string, string>, over?: RequestInit, url?: string): [string | URL | Request, RequestInit];
  /** @throws `AgentAuthError` `body_not_replayable` if it cannot be sent again */
  require(): void;
}

/** Makes the arguments of `fetch` reusable. */
function toReplay(
  input: string | URL | Request,
  { init, mayFollow, userAgent }: { init: RequestInit; userAgent: string } & Pick<Replay, "mayFollow">,
): Replay {
  const { body } = init;
  const isStream =
    typeof body === "object" && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body);
  const request = isRequest(input) ? input : undefined;
  // Whatever else has a body can be read once. To ask for the stream of a text would make one.
  const isUsedUp = request instanceof HttpRequest ? !isRepeatable(request.payload) : Boolean(request?.body);
  const redirect = init.redirect ?? request?.redirect ?? "follow";
  const ownHeaders = () => {
    const headers = new HttpHeaders(init.headers ?? request?.headers);
    if (!headers.has("user-agent")) headers.set("user-agent", userAgent);
    return headers;
  };
  return {
    url: request?.url ?? String(input),
    method: normalizeMethod(init.method ?? request?.method ?? "GET"),
    mayFollow,
    redirect,
    headers: ownHeaders,
    next(more, over = {}, url) {
      const headers = ownHeaders();
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
      const fresh = isUsedUp && request ? request.clone() : input;
      return [url === undefined ? fresh : movedTo(url, fresh), { ...init, redirect, headers, ...over }];
    },
    require() {
      if (!isStream) return;
      throw new AgentAuthError(
        "body_not_replayable",
        "the server requires the request again, with another proof or token, but its body is a stream that can be sent only once",
        { class: "auth", hint: "give the body as a string, bytes or a form" },
      );
    },
  };
}

function movedTo(url: string, input: string | URL | Request): string | Request {
  if (input instanceof HttpRequest) return input.movedTo(url);
  return isRequest(input) ? new Request(url, input) : url;
}
