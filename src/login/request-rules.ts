import type { IncomingMessage } from "node:http";
import { FORBIDDEN, NOT_FOUND, NOT_OURS, ONLY_GET, type Page } from "./pages.js";

/** What a request must be to be looked at. */
export interface RequestRules {
  /** The authorities by which a browser may have come, such as `127.0.0.1:49152`. */
  hosts: ReadonlySet<string>;
  /** Whether there is something at a path, compared byte for byte. */
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
export function refusalOf(request: IncomingMessage, { hosts, knows }: RequestRules): Page | undefined {
  const target = request.url ?? "";
  const given = (name: string) => request.headersDistinct[name] ?? [];
  const [host, ...moreHosts] = given("host");
  // An absolute-form target is for proxies; its host would overrule the Host header (RFC 9112 section 3.2.2).
  if (!target.startsWith("/")) return FORBIDDEN;
  if (host === undefined || moreHosts.length > 0 || !hosts.has(host)) return FORBIDDEN;
  if (given("origin").length > 0) return FORBIDDEN;
  if (given("sec-fetch-dest").some((destination) => destination !== "document")) return FORBIDDEN;
  // A page loaded ahead of time would use the one callback up before the person is there to see what comes of it.
  if (given("sec-purpose").length > 0 || given("purpose").length > 0) return FORBIDDEN;
  if (!knows(pathOf(target))) return NOT_FOUND;
  if (request.method !== "GET") return ONLY_GET;
  const hasBody = given("transfer-encoding").length > 0 || given("content-length").some((length) => length !== "0");
  return hasBody ? NOT_OURS : undefined;
}

/** The path of a request target as it was sent: nothing decoded, no dots resolved. */
export function pathOf(target: string): string {
  return target.split("?", 1)[0] ?? "";
}

/** The query of a request target. */
export function queryOf(target: string): URLSearchParams {
  const at = target.indexOf("?");
  return new URLSearchParams(at === -1 ? "" : target.slice(at + 1));
}
