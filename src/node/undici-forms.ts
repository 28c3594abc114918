/** A request in parts that undici takes from another copy's or from Node's own classes. */
export interface PlainRequest {
  url: string;
  settings: Record<string, unknown>;
}

/** Splits a request into plain parts: the classes of Node's fetch are unknown to another copy of undici. */
export async function plainRequest(input: string | URL | Request, init: RequestInit): Promise<PlainRequest> {
  const request = input instanceof Request ? input : undefined;
  const headers = new Headers(init.headers ?? request?.headers);
  let body = init.body === undefined ? request?.body : init.body;
  if (body instanceof FormData) {
    const encoded = new Response(body);
    if (!headers.has("content-type")) headers.set("content-type", encoded.headers.get("content-type") ?? "");
    body = await encoded.arrayBuffer();
  }
  const { method, redirect, signal } = request ?? {};
  const settings = { method, redirect, signal, ...init, headers: [...headers], body, ...(body && { duplex: "half" }) };
  return {
    url: request ? request.url : String(input),
    settings: Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined && value !== null)),
  };
}

const WITHOUT_BODY = new Set([204, 205, 304]);

/** The response as a `Response` of the global class, so that `instanceof` and `new Response(…)` work as with the global fetch. */
export function globalResponse(answer: Response): Response {
  const { status, statusText } = answer;
  const body = WITHOUT_BODY.has(status) ? null : answer.body;
  const response = new Response(body, { status, statusText, headers: [...answer.headers] as [string, string][] });
  // These also keep the original reachable: when it is collected, undici cancels a body that is not being read.
  return Object.defineProperties(response, {
    url: { get: () => answer.url },
    redirected: { get: () => answer.redirected },
    type: { get: () => answer.type },
  });
}
