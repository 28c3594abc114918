import type { PlainRequest, PlainResponse, PlainSend } from "../http/plain.js";

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 20;
/** Not sent to another origin after a redirect (Fetch Standard, HTTP-redirect fetch). */
const CREDENTIALS = ["authorization", "proxy-authorization", "cookie", "host"];
const OF_BODY = ["content-encoding", "content-language", "content-location", "content-type", "content-length"];

/** The global `fetch`, with its classes, over another way to send. */
export function fetchOver(send: PlainSend): typeof globalThis.fetch {
  return async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const request = input instanceof Request ? input : undefined;
    const redirect = init.redirect ?? request?.redirect ?? "follow";
    let current = await plainRequest(request?.url ?? String(input), request, init);
    for (let hop = 0; ; hop++) {
      const response = await send(current);
      const location = REDIRECTS.has(response.status) ? headerOf(response, "location") : undefined;
      if (location === undefined || redirect === "manual") return webResponse(response, current, hop > 0);
      response.body?.destroy();
      if (redirect === "error") throw failed("unexpected redirect");
      if (hop >= MAX_REDIRECTS) throw failed("redirect count exceeded");
      current = redirected(current, response.status, location);
    }
  };
}

function failed(message: string): TypeError {
  return new TypeError("fetch failed", { cause: new Error(message) });
}

async function plainRequest(url: string, request: Request | undefined, init: RequestInit): Promise<PlainRequest> {
  const headers = new Headers(init.headers ?? request?.headers);
  const method = methodOf(init.method ?? request?.method ?? "GET");
  const signal = init.signal ?? request?.signal ?? undefined;
  const given = init.body === undefined ? (request?.body ?? undefined) : (init.body ?? undefined);
  let body: PlainRequest["body"];
  if (typeof given === "string") body = given;
  else if (given instanceof ReadableStream) body = given as unknown as AsyncIterable<Uint8Array>;
  else if (typeof given === "object" && Symbol.asyncIterator in given)
    body = given as unknown as AsyncIterable<Uint8Array>;
  else if (given !== undefined) {
    const encoded = new Response(given);
    const type = encoded.headers.get("content-type");
    if (type && !headers.has("content-type")) headers.set("content-type", type);
    body = new Uint8Array(await encoded.arrayBuffer());
  }
  if (typeof given === "string" && !headers.has("content-type"))
    headers.set("content-type", "text/plain;charset=UTF-8");
  if (body !== undefined && (method === "GET" || method === "HEAD"))
    throw new TypeError("a request with the method GET or HEAD cannot have a body");
  return { url: new URL(url).href, method, headers: [...headers], body, signal };
}

const UPPER_CASED = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]);

function methodOf(method: string): string {
  const upper = method.toUpperCase();
  if (upper === "CONNECT" || upper === "TRACE") throw new TypeError(`the method ${upper} cannot be used`);
  return UPPER_CASED.has(upper) ? upper : method;
}

/** The request that a redirect asks for (Fetch Standard, HTTP-redirect fetch). */
function redirected(request: PlainRequest, status: number, location: string): PlainRequest {
  const from = new URL(request.url);
  if (!URL.canParse(location, from.href)) throw failed("invalid redirect URL");
  const to = new URL(location, from);
  if (to.hash === "") to.hash = from.hash;
  const { method, body, headers, signal } = request;
  const isDropped = (status === 303 && method !== "GET" && method !== "HEAD") || (status <= 302 && method === "POST");
  if (!isDropped && body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw failed("the body is a stream, which cannot be sent again");
  }
  const dropped = [...(isDropped ? OF_BODY : []), ...(to.origin === from.origin ? [] : CREDENTIALS)];
  return {
    url: to.href,
    method: isDropped ? "GET" : method,
    headers: [...headers].filter(([name]) => !dropped.includes(name)),
    body: isDropped ? undefined : body,
    signal,
  };
}

function headerOf({ headers }: PlainResponse, wanted: string): string | undefined {
  return headers.find(([name]) => name === wanted)?.[1];
}

/** A `Response` of the global class, so that `instanceof` and `new Response(…)` work as with the global fetch. */
function webResponse(plain: PlainResponse, { url, signal }: PlainRequest, redirected: boolean): Response {
  const { status, statusText, headers } = plain;
  const body = plain.body && streamOf(plain.body, signal);
  const response = new Response(body, { status, statusText, headers: headers as [string, string][] });
  const address = new URL(url);
  address.hash = "";
  return Object.defineProperties(response, {
    url: { value: address.href },
    redirected: { value: redirected },
    type: { value: "basic" },
  });
}

function streamOf(body: NonNullable<PlainResponse["body"]>, signal: AbortSignal | undefined): ReadableStream {
  const parts = body[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
        } catch (error) {
          controller.error(signal?.aborted ? signal.reason : new TypeError("terminated", { cause: error }));
        }
      },
      cancel() {
        body.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
