import type { IncomingMessage } from "node:http";
import { type BrowserPage, FORBIDDEN, NOT_FOUND, NOT_OURS, ONLY_GET } from "./pages.js";

/** Which requests are handled. */
export interface RequestRules {
  /** The authorities by which a browser may have come, such as `127.0.0.1:49152`. */
  hosts: ReadonlySet<string>;
  /** Whether a path exists, compared byte for byte. */
  knows(path: string): boolean;
}

/**
 * Checks that a request can be a browser's own navigation to one of our paths.
 *
 * Any web page can make a browser send requests here, but it can choose neither the Host nor hide where the request
 * comes from and what it is for.
 *
 * @returns the page that refuses the request, or nothing
 */
export function refusalPageFor(request: IncomingMessage, { hosts, knows }: RequestRules): BrowserPage | undefined {
  const target = request.url ?? "";
  const headerValues = (name: string) => request.headersDistinct[name] ?? [];
  const [host, ...moreHosts] = headerValues("host");
  // An absolute-form target is for proxies; its host would overrule the Host header (RFC 9112 section 3.2.2).
  if (!target.startsWith("/")) return FORBIDDEN;
  if (host === undefined || moreHosts.length > 0 || !hosts.has(host)) return FORBIDDEN;
  if (headerValues("origin").length > 0) return FORBIDDEN;
  if (headerValues("sec-fetch-dest").some((destination) => destination !== "document")) return FORBIDDEN;
  // A prefetch would use up the single callback before the user sees its result.
  if (headerValues("sec-purpose").length > 0 || headerValues("purpose").length > 0) return FORBIDDEN;
  if (!knows(pathOf(target))) return NOT_FOUND;
  if (request.method !== "GET") return ONLY_GET;
  const hasBody =
    headerValues("transfer-encoding").length > 0 || headerValues("content-length").some((length) => length !== "0");
  return hasBody ? NOT_OURS : undefined;
}

/** The path of a request target, unchanged: nothing decoded, no dots resolved. */
export function pathOf(target: string): string {
  return target.split("?", 1)[0] ?? "";
}

/** The query of a request target. */
export function queryOf(target: string): URLSearchParams {
  return new URLSearchParams(target.slice(pathOf(target).length));
}
