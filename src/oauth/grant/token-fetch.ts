import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isRepeatable } from "../../http/body-content.js";
import { discardBody } from "../../http/buffered-response.js";
import { HttpHeaders } from "../../http/http-headers.js";
import { HttpRequest, normalizeMethod } from "../../http/http-request.js";
import { isSessionUnknown } from "../../http/lost-session.js";
import { isRequest, isResponse } from "../../http/own-fetch.js";
import { redirectTarget } from "../../http/redirect.js";
import { quote, type Secret } from "../../redact.js";
import { noResourceMetadata } from "../discovery/resource-metadata.js";
import { proverFor } from "../dpop/dpop.js";
import type { Nonces, Prover } from "../http/http.js";
import { bearerChallenge } from "../model/challenge.js";
import type { Grant } from "../model/grant.js";
import { chooseRecovery, recoverToken, type ServerTokens } from "./rejected-token.js";

/** What `AgentClient.fetch` takes beside the options of `fetch`. */
export interface AgentRequestInit extends RequestInit {
  /** The MCP server whose token the request carries, if the address is below that of the server. Default: the address. */
  server?: string | undefined;
  /** The scopes that the token must have, separated by blanks. */
  scope?: string | undefined;
  /** Gets each token right before it is sent, such as to mask it in what the server answers. */
  onToken?: ((token: Secret) => void) | undefined;
}

/** What `fetch` needs from its agent. */
export interface FetchContext extends ServerTokens {
  /** The `fetch` for requests to a server, with the token of a grant if there is one. */
  fetchFor(url: string, grant: Grant | undefined): typeof globalThis.fetch;
  /** DPoP nonces of the servers. */
  nonces: Nonces;
}

/**
 * Sends a request with the token of its server. Each recovery is tried once: a rejected token is refreshed, then replaced
 * by a new login; missing scopes are requested. If the server still rejects the request, its response is returned.
 */
export async function fetchWithToken(
  context: FetchContext,
  input: string | URL | Request,
  { server: named, scope, onToken, ...init }: AgentRequestInit,
): Promise<Response> {
  const signal = init.signal ?? (isRequest(input) ? input.signal : undefined) ?? undefined;
  const replay = toReplay(input, init);
  const { url } = replay;
  const server = named === undefined ? url : serverOf(named, url);
  const options = { signal, ...(scope !== undefined && { scope }) };
  const first = (await context.grant(server, options)) ?? (await sendWithout(context, replay, server, options));
  if (isResponse(first)) return first;
  let grant = first;
  const tried = { refresh: false, login: false, stepUp: false };
  for (;;) {
    onToken?.(grant.tokens.accessToken);
    const response = await sendWithToken(context.fetchFor(url, grant), replay, grant, context.nonces);
    // The response of another server after a redirect says nothing about this server's token.
    if (response.redirected && new URL(response.url).origin !== new URL(url).origin) return response;
    if (response.status === 401 && (await isSessionUnknown(response, replay.headers()))) return response;
    const challenge = bearerChallenge(response.headers);
    const rejection = { status: response.status, challenge, grant, tried };
    const recovery = chooseRecovery(rejection, context);
    if (recovery === undefined) return response;
    await discardBody(response);
    replay.require();
    grant = await recoverToken(context, recovery, { ...rejection, signal });
  }
}

/** Sends a request without a token. @returns the response, or the grant to send it with if it was rejected */
async function sendWithout(
  context: FetchContext,
  replay: Replay,
  server: string,
  options: { signal: AbortSignal | undefined; scope?: string },
): Promise<Response | Grant> {
  const { url } = replay;
  const response = await sendWithToken(context.fetchFor(url, undefined), replay, undefined, context.nonces);
  const { status } = response;
  const challenge = bearerChallenge(response.headers);
  const isRejected = status === 401 || (status === 403 && challenge !== undefined);
  if (!isRejected || response.redirected) return response;
  context.onRejected(server);
  const grant = await context.grant(server, { ...options, challenge }).catch((error: unknown) => {
    throw isLoginUnknown(error) && challenge?.resourceMetadata.length === 0
      ? noResourceMetadata(server, { status, challenge })
      : error;
  });
  if (grant === undefined) return response;
  await discardBody(response);
  replay.require();
  return grant;
}

/** The server whose token a request carries. @throws `TypeError` if the address is not below it */
function serverOf(server: string, url: string): string {
  const [base, target] = [new URL(server), new URL(url)];
  const folder = base.pathname.replace(/\/?$/, "/");
  const isBelow = target.pathname === base.pathname || target.pathname.startsWith(folder);
  if (base.origin === target.origin && isBelow) return server;
  throw new TypeError(`the option server is ${quote(server)}, and the address ${quote(url)} is not below it`);
}

/** Whether a login is required that would find out no more than the request did. */
function isLoginUnknown(error: unknown): boolean {
  return isAgentAuthError(error) && error.code === "login_required" && error.status === undefined;
}

/**
 * Sends a request with a grant's token: as a bearer token, or with a DPoP proof if the token is bound to a key; without
 * a grant, without a token.
 */
async function sendWithToken(
  send: typeof globalThis.fetch,
  replay: Replay,
  grant: Grant | undefined,
  nonces: Nonces,
): Promise<Response> {
  const token = grant?.tokens.accessToken.reveal();
  const prover = grant && proverFor(grant, nonces);
  // fetch sends the Authorization header to the same origin only.
  if (!prover && hasOnlyPublicHeaders(replay)) return send(...replay.next(buildBearerHeaders(token)));
  return sendWithinOrigin(send, replay, { token, prover });
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

/**
 * Follows redirects within the origin only, because the request is for its server. A proof is for one address, so every
 * hop needs its own. If the server requires a nonce in the proof (RFC 9449 section 9), the request is repeated once.
 */
async function sendWithinOrigin(
  send: typeof globalThis.fetch,
  replay: Replay,
  { token, prover }: { token: string | undefined; prover: Prover | undefined },
): Promise<Response> {
  const { method } = replay;
  // A browser does not show the target of a redirect.
  const redirect = replay.redirect === "follow" ? "manual" : replay.redirect;
  let url = replay.url;
  let hop = 0;
  let hasNonce = false;
  for (;;) {
    const previousNonce = prover?.nonces.get(url);
    const headers = await buildTokenHeaders(token, prover, { method, url });
    const response = await send(...replay.next(headers, { redirect }, hop === 0 ? undefined : url));
    prover?.nonces.learn(url, response.headers);
    const options = { method, url, hop, mayRepeat: true };
    const target = replay.redirect === "follow" ? redirectTarget(response, options) : undefined;
    if (target !== undefined) {
      url = target;
      hop++;
      // Another request may have received the nonce in the meantime.
    } else if (prover && !hasNonce && isNonceChallenge(response) && prover.nonces.get(url) !== previousNonce)
      hasNonce = true;
    else return response;
    await discardBody(response);
    replay.require();
  }
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
  /** The caller's redirect mode. */
  readonly redirect: NonNullable<RequestInit["redirect"]>;
  /** The headers of the caller. */
  headers(): HttpHeaders;
  /** The arguments for `fetch`, with additional headers, options and another address. */
  next(headers: Record<string, string>, over?: RequestInit, url?: string): [string | URL | Request, RequestInit];
  /** @throws `AgentAuthError` `body_not_replayable` if it cannot be sent again */
  require(): void;
}

/** Makes the arguments of `fetch` reusable. */
function toReplay(input: string | URL | Request, init: RequestInit): Replay {
  const { body } = init;
  const isStream =
    typeof body === "object" && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body);
  const request = isRequest(input) ? input : undefined;
  // Whatever else has a body can be read once. To ask for the stream of a text would make one.
  const isUsedUp = request instanceof HttpRequest ? !isRepeatable(request.payload) : Boolean(request?.body);
  const redirect = init.redirect ?? request?.redirect ?? "follow";
  const ownHeaders = () => new HttpHeaders(init.headers ?? request?.headers);
  return {
    url: request?.url ?? String(input),
    method: normalizeMethod(init.method ?? request?.method ?? "GET"),
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
