import { lookup as dnsLookup } from "node:dns/promises";
import type { Network } from "../http/network.js";
import { createFetch, type DispatcherOptions } from "./dispatcher.js";
import { proxyChooser } from "./proxies.js";
import { createSsrfGuard, type Lookup } from "./ssrf-guard.js";

/** How {@link nodeNetwork} reaches the network. */
export interface NodeNetworkOptions extends DispatcherOptions {
  /** Looks up every address of a name. Default: the system resolver, hosts file included. For tests. */
  lookup?: Lookup | undefined;
}

/**
 * The network of a computer, for the option `network` of an agent client: names are looked up, all their addresses
 * checked, and only those addresses connected to, on every redirect too. A name behind a proxy is resolved by the
 * proxy: there only literal addresses are checked.
 *
 * Certificates are always checked, regardless of `NODE_TLS_REJECT_UNAUTHORIZED`.
 *
 * @example
 * const agent = new AgentClient({ store, login, network: nodeNetwork() });
 */
export function nodeNetwork(options: NodeNetworkOptions = {}): Network {
  const lookup: Lookup = options.lookup ?? ((hostname) => dnsLookup(hostname, { all: true }));
  return {
    connectTo(server, exemptions) {
      const guard = createSsrfGuard(server.hostname, {
        exemptions,
        lookup,
        isBehindProxy: proxyChooser(options)(server) !== undefined,
      });
      return { fetch: createFetch(options, guard), addressClass: guard.addressClass };
    },
  };
}
