import type { Reply } from "../http/reply.js";
import { isJsonObject } from "../http/strict-json.js";
import { hideClientSecret } from "../redact.js";

// openapi-fetch hands out responses, and what was read of them is wanted with it.
const replies = new WeakMap<Response, Reply>();

/** Keeps what was read of a response, for {@link replyOf}. */
export function remember(reply: Reply): Response {
  replies.set(reply.response, reply);
  return reply.response;
}

/** Lets a response be read although its body has been, as often as wanted. */
export function replay(reply: Reply): Response {
  const { text } = reply;
  return Object.defineProperties(remember(reply), {
    body: { value: null },
    bodyUsed: { value: false },
    text: { value: async () => text },
    json: { value: async () => hideSecrets(JSON.parse(text) as unknown) },
    arrayBuffer: { value: async () => new TextEncoder().encode(text).buffer },
    blob: { value: async () => new Blob([text]) },
  });
}

/** What was read of a response. */
export function replyOf(response: Response): Reply {
  const reply = replies.get(response);
  if (reply === undefined) {
    throw new TypeError("a middleware replaced a response; it must pass on the response that it was given");
  }
  return reply;
}

/** Lets go of what was read: undici keeps a Response longer than anybody uses it. */
export function forget(response: Response): void {
  replies.delete(response);
}

/** Makes the client secrets in a list's answer print and serialise as a mask; the same value. */
export function hideSecrets<T>(body: T): T {
  if (!isJsonObject(body) || !Array.isArray(body["summaries"])) return body;
  for (const item of body["summaries"] as unknown[]) if (isJsonObject(item)) hideSecretOf(item);
  return body;
}

/** The same for one item of a list. */
export function hideSecretOf(item: Record<string, unknown>): void {
  const details = item["dynamic_client_details"];
  if (typeof details === "object" && details !== null) hideClientSecret(details);
}
