import type { Network } from "../http/network.js";
import { nodeNetwork } from "../node/network.js";
import type { Redactor } from "../redact.js";
import { isUnchecked, type NetworkOptions, outletOf, withCertificates } from "./network.js";

/**
 * The network for MCP servers and their issuers: it judges where each name leads (see {@link nodeNetwork}), and goes
 * through the proxies and trusts the authorities that flags and environment name.
 *
 * @throws `AgentAuthError` `usage`
 */
export async function agentNetwork(options: NetworkOptions, redactor: Redactor): Promise<Network> {
  const network = nodeNetwork(await outletOf(options, redactor));
  if (!isUnchecked(options.env)) return network;
  return {
    wayTo(server, lifted) {
      const way = network.wayTo(server, lifted);
      return { ...way, fetch: withCertificates(way.fetch) };
    },
  };
}
