import type { BufferedResponse } from "../http/buffered-response.js";
import { isJsonObject } from "../http/strict-json.js";
import { hideClientSecret } from "../redact.js";

/** Sends one request and returns the whole response. */
type SendRequest = (request: Request) => Promise<BufferedResponse>;

/** The `fetch` option of a call of openapi-fetch. */
type CallFetch = (request: Request) => Promise<Response>;

/**
 * Makes one call through openapi-fetch and returns its buffered response, which openapi-fetch does not pass on.
 *
 * @param call has to pass its argument on as the `fetch` of the call
 * @throws TypeError where a middleware replaced the response
 */
export async function bufferedResponseOf(
  call: (fetch: CallFetch) => Promise<{ response: Response }>,
  send: SendRequest,
): Promise<BufferedResponse> {
  const read: { reply?: BufferedResponse } = {};
  const { response } = await call(async (request) => {
    read.reply = await send(request);
    return read.reply.response;
  });
  if (read.reply?.response !== response) {
    throw new TypeError("a middleware replaced a response; it must pass on the response that it was given");
  }
  return read.reply;
}

/** Makes the body of a consumed response readable again, any number of times; returns the same object. */
export function replay(reply: BufferedResponse): BufferedResponse {
  const { text, response } = reply;
  const { status, statusText, headers, url } = response;
  Object.defineProperties(response, {
    body: { value: null },
    bodyUsed: { value: false },
    text: { value: async () => text },
    json: { value: async () => hideSecrets(JSON.parse(text) as unknown) },
    arrayBuffer: { value: async () => new TextEncoder().encode(text).buffer },
    blob: { value: async () => new Blob([text]) },
    bytes: { value: async () => new TextEncoder().encode(text) },
    clone: {
      value: () => {
        const copy = new Response(null, { status, statusText, headers: [...headers] });
        return replay({ ...reply, response: Object.defineProperty(copy, "url", { value: url }) }).response;
      },
    },
  });
  return reply;
}

/** Makes the client secrets in a list response print and serialise as a mask; returns the same value. */
export function hideSecrets<T>(body: T): T {
  if (!isJsonObject(body) || !Array.isArray(body["summaries"])) return body;
  for (const item of body["summaries"]) if (isJsonObject(item)) hideSecretOf(item);
  return body;
}

/** The same for one item of a list. */
export function hideSecretOf(item: object): void {
  const details = "dynamic_client_details" in item ? item.dynamic_client_details : undefined;
  if (typeof details === "object" && details !== null) hideClientSecret(details);
}
