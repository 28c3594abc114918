import type { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { parseUrl, shownUrl } from "./address.js";
import { badResponse, discardBody, type Send } from "./buffered-response.js";
import type { Cookies } from "./cookies.js";
import { HttpRequest } from "./http-message.js";

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_HOPS = 3;

/** Follows redirects of a request for a document, which may carry a token for its origin. */
export function followSameOrigin(send: Send): Send {
  return async (request, call) => {
    const { method, url, headers } = request;
    const { reply, refused } = await sendWithinOrigin({ method, url }, (target, hop) =>
      send(hop === 0 ? request : new HttpRequest(target, { method, headers }), call),
    );
    if (refused) throw refused;
    return reply;
  };
}

export interface OriginRequest {
  method: string;
  url: string;
  /** Whether a request with a body can be sent again, where the status requires it (307, 308). */
  mayRepeat?: boolean;
  /** Whether a redirect to an address of the origin is followed. Default: all are. */
  mayFollow?: ((target: string) => boolean) | undefined;
  /** Those of its origin, which each request gets, and each response changes. */
  cookies?: Cookies | undefined;
  ownCookie?: string | null;
}

/** What a request within its origin ended with. */
export interface OriginReply<Reply> {
  reply: Reply;
  /** Why the redirect in it was not followed: `redirect_refused`. Undefined if it is none. */
  refused: AgentAuthError | undefined;
}

/**
 * Sends a request and follows its redirects inside the origin, at most three, because the request is for its server.
 *
 * @param send sends it to an address, after so many redirects, with more headers
 */
export async function sendWithinOrigin<Reply extends { response: Response }>(
  request: OriginRequest,
  send: (url: string, hop: number, more: Record<string, string>) => Promise<Reply>,
): Promise<OriginReply<Reply>> {
  const { cookies, ownCookie = null } = request;
  let { url } = request;
  for (let hop = 0; ; hop++) {
    const cookie = cookies?.header(url, ownCookie);
    const reply = await send(url, hop, cookie === undefined ? {} : { cookie });
    cookies?.learn(reply.response.headers);
    const target = redirectTarget(reply.response, { ...request, url, hop });
    if (typeof target !== "string") return { reply, refused: target };
    await discardBody(reply.response);
    url = target;
  }
}

/** Whether a response redirects its request off the origin. */
export function leavesOrigin({ status, headers }: Response, url: string): boolean {
  const location = REDIRECTS.has(status) ? headers.get("location") : null;
  const from = new URL(url);
  return location !== null && (parseUrl(location, from) ?? from).origin !== from.origin;
}

/**
 * The target to which a response redirects a request with a token: in the same origin, with the same method.
 *
 * @returns undefined for a response that is no redirect, and the error for a redirect that is not followed
 */
function redirectTarget(
  response: Response,
  { method, url, hop, mayRepeat = false, mayFollow }: OriginRequest & { hop: number },
): string | AgentAuthError | undefined {
  const refuse = (message: string, hint?: string) => badResponse("redirect_refused", message, { response, url, hint });
  // A browser hides where a redirect leads.
  if (response.type === "opaqueredirect") return refuse("the response is a redirect, which was not expected");
  const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
  if (location === null) return undefined;
  const from = new URL(url);
  const target = parseUrl(location, from);
  if (target === undefined) return refuse(`it redirects to ${quote(location)}, which is not an address`);
  const shown = quote(shownUrl(target.href));
  if (target.origin !== from.origin) {
    return refuse(
      `it redirects from ${from.origin} to ${quote(target.origin)}; redirects off the origin are not followed`,
    );
  }
  if (target.username !== "" || target.password !== "")
    return refuse(`it redirects to ${shown} with a user name or password`);
  if (mayFollow?.(target.href) === false) return refuse(`it redirects to ${shown}, which is not followed from there`);
  const keepsBody = mayRepeat && (response.status === 307 || response.status === 308);
  if (method !== "GET" && method !== "HEAD" && !keepsBody)
    return refuse(
      `it redirects a ${method} request to ${shown}`,
      // What cannot be sent again went to an address that metadata name, and no user gave.
      mayRepeat ? "if the server is at that address, give that one" : undefined,
    );
  if (hop >= MAX_HOPS) return refuse(`more than ${MAX_HOPS} redirects, the last to ${shown}`);
  return target.href;
}
