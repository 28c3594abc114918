import type { Network } from "../address-class.js";
import {
  checkMethod,
  extractBody,
  HttpHeaders,
  HttpRequest,
  HttpResponse,
  isRepeatable,
  isRequest,
  ownFetch,
} from "../http-message.js";
import { createSsrfGuard, type Lookup, proxyChooser, type SsrfGuard } from "./agents.js";
import { type ConnectOptions, createSend, type PlainRequest, type PlainSend } from "./http-send.js";

/** How {@link nodeNetwork} reaches the network. */
export interface NodeNetworkOptions extends ConnectOptions {
  /** Looks up every address of a name. Default: the system resolver, hosts file included. For tests. */
  lookup?: Lookup | undefined;
}

/**
 * The network of a computer, for the option `network` of an agent client: names are looked up, all their addresses
 * checked, and only those addresses connected to, on every redirect too. A name behind a proxy is resolved by the
 * proxy: there only literal addresses are checked.
 *
 * Certificates are always checked, regardless of `NODE_TLS_REJECT_UNAUTHORIZED`.
 *
 * @example
 * const agent = new AgentClient({ store, login, network: nodeNetwork() });
 */
export function nodeNetwork(options: NodeNetworkOptions = {}): Network {
  const lookup: Lookup = options.lookup ?? lookupBySystem;
  return {
    connectTo(server, exemptions) {
      const isBehindProxy = proxyChooser(options)(server) !== undefined;
      const guard = createSsrfGuard(server.hostname, { exemptions, lookup, isBehindProxy });
      return { fetch: createFetch(options, guard), addressClass: guard.addressClass };
    },
  };
}

/** A `fetch` that uses the proxies, trusts the authorities, and connects to what the guard allows. */
export function createFetch(options: ConnectOptions, guard: SsrfGuard | undefined): typeof globalThis.fetch {
  return fetchOver(createSend(options, guard));
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 20;
/** Not sent to another origin after a redirect (Fetch Standard, HTTP-redirect fetch). */
const CREDENTIALS = ["authorization", "proxy-authorization", "cookie"];
const OF_BODY = ["content-encoding", "content-language", "content-location", "content-type", "content-length"];

/** The global `fetch`, with its classes, over another way to send; an {@link HttpRequest} gets an {@link HttpResponse}. */
function fetchOver(send: PlainSend): typeof globalThis.fetch {
  return ownFetch(async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const request = isRequest(input) ? input : undefined;
    const redirect = init.redirect ?? request?.redirect ?? "follow";
    let current = await plainRequest(request?.url ?? String(input), request, init);
    for (let hop = 0; ; hop++) {
      const response = await send(current);
      const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
      if (location === null || redirect === "manual")
        return request instanceof HttpRequest ? response : webResponse(response);
      await response.discard();
      if (redirect === "error") throw fetchError("unexpected redirect");
      if (hop >= MAX_REDIRECTS) throw fetchError("redirect count exceeded");
      current = redirectRequest(current, response.status, location);
    }
  });
}

/** Loads the module where there is a name to look up: a server on this machine mostly has an address. */
const lookupBySystem: Lookup = (hostname) =>
  process.getBuiltinModule("node:dns/promises").lookup(hostname, { all: true });

function fetchError(message: string): TypeError {
  return new TypeError("fetch failed", { cause: new Error(message) });
}

async function plainRequest(url: string, request: Request | undefined, init: RequestInit): Promise<PlainRequest> {
  const headers = new HttpHeaders(init.headers ?? request?.headers);
  const method = checkMethod(init.method ?? request?.method ?? "GET");
  const signal = init.signal ?? request?.signal ?? undefined;
  const ofRequest = request instanceof HttpRequest ? request.payload : request?.body;
  const given = init.body === undefined ? ofRequest : init.body;
  const { source, type } = extractBody(given);
  if (type !== null && !headers.has("content-type")) headers.set("content-type", type);
  if (source !== null && (method === "GET" || method === "HEAD"))
    throw new TypeError("a request with the method GET or HEAD cannot have a body");
  // What the class of the runtime has encoded is sent in one piece, with its length.
  const isEncoded = !isRepeatable(source) && source !== given;
  const body = isEncoded ? await new HttpResponse(source).bytes() : (source ?? undefined);
  // Its address is one that was read already.
  const href = request instanceof HttpRequest ? url : new URL(url).href;
  return { url: href, method, headers, body, signal };
}

/** The request that a redirect asks for (Fetch Standard, HTTP-redirect fetch). */
function redirectRequest(request: PlainRequest, status: number, location: string): PlainRequest {
  const from = new URL(request.url);
  if (!URL.canParse(location, from.href)) throw fetchError("invalid redirect URL");
  const to = new URL(location, from);
  if (to.hash === "") to.hash = from.hash;
  const { method, body, headers, signal } = request;
  const isDropped = (status === 303 && method !== "GET" && method !== "HEAD") || (status <= 302 && method === "POST");
  if (!isDropped && body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array))
    throw fetchError("the body is a stream, which cannot be sent again");
  const dropped = [...(isDropped ? OF_BODY : []), ...(to.origin === from.origin ? [] : CREDENTIALS)];
  return {
    url: to.href,
    method: isDropped ? "GET" : method,
    headers: [...headers].filter(([name]) => !dropped.includes(name)),
    body: isDropped ? undefined : body,
    signal,
    redirected: true,
  };
}

/** A `Response` of the global class, so that `instanceof` and `new Response(…)` work as with the global fetch. */
function webResponse({ body, status, statusText, headers, url, redirected, type }: HttpResponse): Response {
  const response = new Response(body, { status, statusText, headers: [...headers] });
  return Object.defineProperties(response, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
  });
}
