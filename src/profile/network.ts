import { AgentAuthError } from "../errors.js";
import type { Network } from "../http/address-class.js";
import { HttpHeaders, isRequest, ownFetch } from "../http/http-message.js";
import { createFetch, nodeNetwork } from "../http/node/network.js";
import type { Redactor } from "../redact.js";
import { buildSendOptions, type NetworkOptions } from "./connection-settings.js";

type Fetch = typeof globalThis.fetch;

/**
 * The `fetch` for the management interface, whose address the user has set: it uses the proxies, authorities and the
 * certificate that are named. Nothing global is changed.
 *
 * @throws `AgentAuthError` `usage`
 */
export function networkFetch(options: NetworkOptions, redactor: Redactor): Fetch {
  const fetch = createFetch(buildSendOptions(options, redactor), undefined);
  return isUnchecked(options.env) ? withCertificates(fetch) : fetch;
}

/** Whether Node is set to accept every certificate. */
function isUnchecked(env: NetworkOptions["env"]): boolean {
  return env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0";
}

/**
 * Where Node is set to accept every certificate, nothing is sent over TLS: a request would either send tokens to any
 * server that responds, or fail at a certificate that the user believes is not checked.
 */
function withCertificates(send: Fetch): Fetch {
  return ownFetch(async (input, init) => {
    const url = new URL(isRequest(input) ? input.url : String(input));
    if (url.protocol !== "https:") return send(input, init);
    throw new AgentAuthError(
      "tls_failed",
      `NODE_TLS_REJECT_UNAUTHORIZED is 0: any server could impersonate ${url.host} and read the tokens, so nothing was sent`,
      { class: "refused", hint: "unset it; --ca-file <file> trusts a certificate authority of your own" },
    );
  }, send);
}

/**
 * The network for MCP servers and their issuers: it checks the address of each host (see {@link nodeNetwork}), uses
 * the proxies and trusts the authorities that flags and environment name.
 *
 * @throws `AgentAuthError` `usage`
 */
export function agentNetwork(options: NetworkOptions, redactor: Redactor): Network {
  const network = nodeNetwork(buildSendOptions(options, redactor));
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
