import { isLoopbackHost, parseUrl, schemelessRule } from "../../http/address.js";
import { quote } from "../../redact.js";

/**
 * Parses the address of an MCP server.
 *
 * @returns the canonical resource (RFC 8707 section 2, MCP authorization): lower-case scheme and host, no fragment, and
 * no slash where the path is empty
 * @throws `TypeError` with the value and the rule
 */
export function parseMcpUrl(value: string): { url: string; resource: string; loopback: boolean } {
  const complain = (rule: string) => new TypeError(`the MCP server's address ${quote(value)} ${rule}`);
  const schemeless = schemelessRule(value);
  if (schemeless !== undefined) throw complain(schemeless);
  const url = parseUrl(value);
  if (url === undefined) throw complain("is not an absolute URL such as https://mcp.example/mcp");
  if (url.username !== "" || url.password !== "")
    throw new TypeError("the MCP server's address must not contain a user name or password");
  if (url.protocol !== "https:" && url.protocol !== "http:") throw complain("must begin with https://");
  const loopback = isLoopbackHost(url.hostname);
  if (url.protocol === "http:" && !loopback) throw complain("must begin with https:// (http:// only for this machine)");
  url.hash = "";
  // Setting an empty query removes its "?".
  if (url.search === "") url.search = "";
  const resource = url.pathname === "/" && url.search === "" ? url.origin : url.href;
  return { url: url.href, resource, loopback };
}

/**
 * Whether a resource named by metadata covers the requested server: the same address, or a parent of it at a
 * segment boundary (`/mcp` covers `/mcp/tools`, not `/mcp2`).
 *
 * @param identityOnly whether the addresses must be the same, except for the slash of an empty path
 */
export function coversServer(resource: URL, server: URL, identityOnly: boolean): boolean {
  if (resource.origin !== server.origin) return false;
  if (resource.href === server.href) return true;
  if (identityOnly) return false;
  const bare = resource.pathname.replace(/\/$/, "");
  return resource.search === "" && (bare === "" || server.pathname.startsWith(`${bare}/`) || server.pathname === bare);
}

/** The value of the option `resource`, and of a stored login, for requests without a `resource`. */
export const NO_RESOURCE = "none";

/** The `resource` parameter of a request (RFC 8707 section 2), unless the login has none. */
export function resourceParameter(resource: string | undefined): { resource?: string } {
  return resource === undefined || resource === NO_RESOURCE ? {} : { resource };
}
