import { quote } from "../redact.js";
import { refusal } from "./body.js";
import { type Reply, type Send, shownUrl } from "./reply.js";

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_HOPS = 3;

/**
 * Follows redirects of a GET inside the origin, at most three; one that leaves the origin is refused, since the
 * request carries a token for this origin alone.
 *
 * @throws `AgentAuthError` `redirect_refused`
 */
export function followSameOrigin(send: Send): Send {
  return async (request, call) => {
    let current = request;
    for (let hop = 0; ; hop++) {
      const reply = await send(current, call);
      // A browser hides where a redirect leads.
      if (reply.response.type === "opaqueredirect")
        throw refuse(reply, "the answer is a redirect, which was not expected");
      const location = REDIRECTS.has(reply.status) ? reply.response.headers.get("location") : null;
      if (location === null) return reply;
      const target = nextAddress(current, location, reply);
      if (hop >= MAX_HOPS)
        throw refuse(reply, `more than ${MAX_HOPS} redirects, the last to ${quote(shownUrl(target.href))}`);
      current = new Request(target.href, { method: current.method, headers: current.headers });
    }
  };
}

function nextAddress(request: Request, location: string, reply: Reply): URL {
  const from = new URL(request.url);
  if (!URL.canParse(location, from.href))
    throw refuse(reply, `it redirects to ${quote(location)}, which is not an address`);
  const target = new URL(location, from);
  if (target.origin !== from.origin) {
    throw refuse(
      reply,
      `it redirects from ${from.origin} to ${quote(target.origin)}; redirects off the origin are not followed`,
    );
  }
  if (target.username !== "" || target.password !== "") {
    throw refuse(reply, `it redirects to ${quote(shownUrl(target.href))} with a user name or password`);
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    throw refuse(reply, `it redirects a ${request.method} request to ${quote(shownUrl(target.href))}`);
  }
  return target;
}

function refuse(reply: Reply, message: string) {
  return refusal("redirect_refused", message, { response: reply.response, url: reply.url });
}
