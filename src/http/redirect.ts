import { quote } from "../redact.js";
import { parseUrl, shownUrl } from "./address.js";
import { badResponse, type Send } from "./buffered-response.js";
import { HttpRequest } from "./http-request.js";

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_HOPS = 3;

/**
 * Follows redirects of a GET inside the origin, at most three; one that leaves the origin is refused, because the
 * request carries a token for this origin alone.
 *
 * @throws `AgentAuthError` `redirect_refused`
 */
export function followSameOrigin(send: Send): Send {
  return async (request, call) => {
    let current = request;
    for (let hop = 0; ; hop++) {
      const reply = await send(current, call);
      const target = redirectTarget(reply.response, { method: current.method, url: current.url, hop });
      if (target === undefined) return reply;
      current = new HttpRequest(target, { method: current.method, headers: current.headers });
    }
  };
}

/** The request that the server redirects. */
interface RedirectedRequest {
  method: string;
  url: string;
  /** How many redirects led to it. */
  hop: number;
  /** Whether a request with a body can be sent again, where the status requires it (307, 308). */
  mayRepeat?: boolean;
}

/**
 * The target to which a response redirects a request with a token: in the same origin, with the same method.
 *
 * @returns undefined for any other response
 * @throws `AgentAuthError` `redirect_refused`
 */
export function redirectTarget(
  response: Response,
  { method, url, hop, mayRepeat = false }: RedirectedRequest,
): string | undefined {
  const refuse = (message: string) => badResponse("redirect_refused", message, { response, url });
  // A browser hides where a redirect leads.
  if (response.type === "opaqueredirect") throw refuse("the response is a redirect, which was not expected");
  const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
  if (location === null) return undefined;
  const from = new URL(url);
  const target = parseUrl(location, from);
  if (target === undefined) throw refuse(`it redirects to ${quote(location)}, which is not an address`);
  const shown = quote(shownUrl(target.href));
  if (target.origin !== from.origin) {
    throw refuse(
      `it redirects from ${from.origin} to ${quote(target.origin)}; redirects off the origin are not followed`,
    );
  }
  if (target.username !== "" || target.password !== "")
    throw refuse(`it redirects to ${shown} with a user name or password`);
  const keepsBody = mayRepeat && (response.status === 307 || response.status === 308);
  if (method !== "GET" && method !== "HEAD" && !keepsBody) throw refuse(`it redirects a ${method} request to ${shown}`);
  if (hop >= MAX_HOPS) throw refuse(`more than ${MAX_HOPS} redirects, the last to ${shown}`);
  return target.href;
}
