import type { Network } from "../../http/network.js";
import { nodeNetwork } from "../../node/network.js";
import type { Redactor } from "../../redact.js";
import { isUnchecked, type NetworkOptions, outletOf, withCertificates } from "./network.js";

/**
 * The network for MCP servers and their issuers: it judges where each name leads (see {@link nodeNetwork}), and goes
 * through the proxies and trusts the authorities that flags and environment name.
 *
 * @throws `AgentAuthError` `usage`
 */
export async function agentNetwork(options: NetworkOptions, redactor: Redactor): Promise<Network> {
  const network = nodeNetwork(await outletOf(options, redactor));
  const isBare = isUnchecked(options.env);
  return {
    connectTo(server, lifted) {
      const way = network.connectTo(server, lifted);
      const fetch = learning(way.fetch, redactor);
      return { ...way, fetch: isBare ? withCertificates(fetch) : fetch };
    },
  };
}

/** A server may repeat what it was sent: whatever is said of it from there on is without that. */
function learning(fetch: typeof globalThis.fetch, redactor: Redactor): typeof globalThis.fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    redactor.add(headers.get("authorization")?.replace(/^[\w-]+ +/, "") ?? "");
    return fetch(input, init);
  };
}
