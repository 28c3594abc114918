import { lookup as lookUp } from "node:dns/promises";
import type { Network } from "../http/network.js";
import type { DispatcherOptions } from "./dispatcher.js";
import { proxyChooser } from "./proxies.js";
import { createSsrfGuard, type Lookup } from "./ssrf-guard.js";

/** How {@link nodeNetwork} reaches the network. */
export interface NodeNetworkOptions extends DispatcherOptions {
  /** Looks up every address of a name. Default: as the machine does, its own list of hosts included. For tests. */
  lookup?: Lookup | undefined;
}

/**
 * The network of a computer, for the option `network` of an agent client: names are looked up, all of their addresses
 * judged, and those very addresses connected to, on every redirect too. What is behind a proxy is looked up by the
 * proxy: there only addresses written as such are judged.
 *
 * Certificates are always checked, whatever `NODE_TLS_REJECT_UNAUTHORIZED` says.
 *
 * @example
 * const agent = new AgentClient({ store, login, network: nodeNetwork() });
 */
export function nodeNetwork(options: NodeNetworkOptions = {}): Network {
  const lookup: Lookup = options.lookup ?? ((hostname) => lookUp(hostname, { all: true }));
  return {
    connectTo(server, lifted) {
      const guard = createSsrfGuard(server.hostname, {
        lifted,
        lookup,
        isHidden: proxyChooser(options)(server) !== undefined,
      });
      let outlet: Promise<typeof globalThis.fetch> | undefined;
      const open = () => {
        outlet ??= import("./dispatcher.js").then(({ createFetch }) => createFetch(options, guard));
        return outlet;
      };
      return {
        fetch: async (input, init) => (await open())(input, init),
        addressClass: guard.reach,
      };
    },
  };
}
