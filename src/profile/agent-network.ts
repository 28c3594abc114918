import { HttpHeaders } from "../http/http-headers.js";
import type { Network } from "../http/network.js";
import { isRequest, ownFetch } from "../http/own-fetch.js";
import type { Redactor } from "../redact.js";
import { nodeNetwork } from "../transport/network.js";
import { isUnchecked, type NetworkOptions, outletOf, withCertificates } from "./network.js";

/**
 * The network for MCP servers and their issuers: it checks the address of each host (see {@link nodeNetwork}), uses
 * the proxies and trusts the authorities that flags and environment name.
 *
 * @throws `AgentAuthError` `usage`
 */
export function agentNetwork(options: NetworkOptions, redactor: Redactor): Network {
  const network = nodeNetwork(outletOf(options, redactor));
  const isBare = isUnchecked(options.env);
  return {
    connectTo(server, exemptions) {
      const connection = network.connectTo(server, exemptions);
      const fetch = maskingCredentials(connection.fetch, redactor);
      return { ...connection, fetch: isBare ? withCertificates(fetch) : fetch };
    },
  };
}

/** A server may repeat the credentials that it was sent: they are masked in every later message. */
function maskingCredentials(fetch: typeof globalThis.fetch, redactor: Redactor): typeof globalThis.fetch {
  return ownFetch(async (input, init) => {
    const headers = new HttpHeaders(init?.headers ?? (isRequest(input) ? input.headers : undefined));
    redactor.add(headers.get("authorization")?.replace(/^[\w-]+ +/, "") ?? "");
    return fetch(input, init);
  }, fetch);
}
