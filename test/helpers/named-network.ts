import { expect } from "vitest";
import type { Network } from "../../src/http/address-class.js";
import { createSsrfGuard } from "../../src/http/node/agents.js";
import type { Scene } from "./issuer.js";

const PUBLIC = "93.184.215.14";

/** The names under which the servers of a scene are reached, all over https. */
export const MCP = "https://mcp.test";
export const ISSUER = "https://as.test";

/**
 * Gives the servers of a scene names of their own: their documents have these, and the network, which judges each name
 * by the addresses that a test gives it, finds the servers behind them.
 */
export function nameServers({ mcp, issuer, login }: Scene) {
  const places: Record<string, string> = { [MCP]: mcp.origin, [ISSUER]: issuer.origin };
  const zone: Record<string, string[]> = { "mcp.test": [PUBLIC], "as.test": [PUBLIC] };
  const rename = <T>(value: T): T => {
    const text = JSON.stringify(value);
    return JSON.parse(text.replaceAll(mcp.origin, MCP).replaceAll(issuer.origin, ISSUER)) as T;
  };
  mcp.metadata = rename(mcp.metadata);
  mcp.challenge = rename(mcp.challenge);
  issuer.metadata = rename(issuer.metadata);
  const lookup = async (hostname: string) => {
    const addresses = zone[hostname];
    if (!addresses) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  const reroute = (url: URL) => `${places[url.origin] ?? url.origin}${url.pathname}${url.search}`;
  const network: Network = {
    connectTo({ hostname }, exemptions) {
      const guard = createSsrfGuard(hostname, { exemptions, lookup, isBehindProxy: false });
      return {
        addressClass: guard.addressClass,
        fetch: async (input, init) => {
          const url = new URL(input instanceof Request ? input.url : String(input));
          await guard.resolve(url.hostname);
          return input instanceof Request ? fetch(new Request(reroute(url), input), init) : fetch(reroute(url), init);
        },
      };
    },
  };
  const { open } = login;
  login.open = async (request) => {
    const session = await open.call(login, request);
    const authorize: typeof session.authorize = (prompt) =>
      session.authorize({ ...prompt, url: reroute(new URL(prompt.url)) });
    return { ...session, authorize };
  };
  return {
    network,
    /** Addresses of names. */
    zone,
    /** The MCP server by its name. */
    url: `${MCP}${mcp.path}`,
    /** Names one more place. */
    place: (name: string, origin: string) => {
      places[name] = origin;
    },
  };
}

/** The error for an address that may not be used. @param option the one that allows it, if there is one */
export const refusedAddress = (words: string, option?: string) =>
  expect.objectContaining({
    code: "bad_address",
    class: "refused",
    message: expect.stringContaining(words),
    ...(option !== undefined && { remedy: { action: "allow", option } }),
  });
