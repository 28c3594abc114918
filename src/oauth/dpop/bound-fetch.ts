import { AgentAuthError } from "../../errors.js";
import { isRepeatable } from "../../http/body-content.js";
import { HttpHeaders } from "../../http/http-headers.js";
import { HttpRequest, normalizeMethod } from "../../http/http-request.js";
import { isRequest } from "../../http/own-fetch.js";
import { redirectTarget } from "../../http/redirect.js";
import type { Nonces, Prover } from "../http/nonces.js";
import { bearerChallenge } from "../model/challenge.js";
import type { Grant } from "../model/grant.js";
import { proverFor } from "./dpop.js";

/**
 * Sends a request with a grant's token: as a bearer token, or with a DPoP proof if the token is bound to a key; without
 * a grant, without a token.
 */
export async function sendWithToken(
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
  const [, { headers }] = replay.next({});
  return [...new HttpHeaders(headers).keys()].every((name) => name === "authorization" || PUBLIC_HEADERS.has(name));
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
    await response.body?.cancel().catch(() => undefined);
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
export interface Replay {
  /** The address. */
  readonly url: string;
  /** The method, as sent. */
  readonly method: string;
  /** The caller's redirect mode. */
  readonly redirect: NonNullable<RequestInit["redirect"]>;
  /** The arguments for `fetch`, with additional headers, options and another address. */
  next(headers: Record<string, string>, over?: RequestInit, url?: string): [string | URL | Request, RequestInit];
  /** @throws `AgentAuthError` `body_not_replayable` if it cannot be sent again */
  require(): void;
}

/** Makes the arguments of `fetch` reusable. */
export function toReplay(input: string | URL | Request, init: RequestInit): Replay {
  const { body } = init;
  const isStream =
    typeof body === "object" && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body);
  const request = isRequest(input) ? input : undefined;
  // Whatever else has a body can be read once. To ask for the stream of a text would make one.
  const isUsedUp = request instanceof HttpRequest ? !isRepeatable(request.payload) : Boolean(request?.body);
  const redirect = init.redirect ?? request?.redirect ?? "follow";
  return {
    url: request?.url ?? String(input),
    method: normalizeMethod(init.method ?? request?.method ?? "GET"),
    redirect,
    next(more, over = {}, url) {
      const headers = new HttpHeaders(init.headers ?? request?.headers);
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
