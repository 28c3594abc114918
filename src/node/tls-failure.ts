import type { AgentAuthError } from "../errors.js";
import { networkError, systemCodeOf } from "../http/network-error.js";
import { quote } from "../redact.js";
import type { TlsProbe, TlsProbeOptions } from "./tls-probe.js";

/** Node's codes for a certificate that is not signed by a trusted authority. */
const UNTRUSTED = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:GET_ISSUER|VERIFY)_?\w*)$/;
/** The codes where a server that requires a client certificate closes the connection without an alert. */
const HUNG_UP = /^(?:UND_ERR_SOCKET|ECONNRESET|EPIPE)$/;

/**
 * A `fetch` whose TLS failures name the issuer of the untrusted certificate, or say that a client certificate was
 * required. To find out, it connects once more to each server that failed this way, and sends nothing.
 */
export function explainingTls(
  send: typeof globalThis.fetch,
  optionsFor: (url: URL) => TlsProbeOptions,
): typeof globalThis.fetch {
  const seen = new Map<string, Promise<TlsProbe | undefined>>();
  const probe = (url: URL, forAlert: boolean) => {
    const known =
      seen.get(url.origin) ?? import("./tls-probe.js").then(({ probeTls }) => probeTls(url, optionsFor(url), forAlert));
    seen.set(url.origin, known);
    return known;
  };
  return async (input, init) => {
    try {
      return await send(input, init);
    } catch (error) {
      const url = new URL(input instanceof Request ? input.url : String(input));
      const code = systemCodeOf(error);
      const hungUp = HUNG_UP.test(code);
      if (url.protocol !== "https:" || init?.signal?.aborted || !(hungUp || UNTRUSTED.test(code))) throw error;
      throw explained(error, url, hungUp, await probe(url, hungUp)) ?? error;
    }
  };
}

function explained(error: unknown, url: URL, hungUp: boolean, probe: TlsProbe | undefined): AgentAuthError | undefined {
  if (probe === undefined) return undefined;
  const { alert, issuer, selfSigned, whose } = probe;
  if (hungUp) {
    if (alert === undefined) return undefined;
    const description = "the server ended the TLS handshake, as one that requires a client certificate does";
    return networkError(error, url.href, { systemCode: alert, description });
  }
  if (issuer === undefined) return undefined;
  const certificate = whose === "proxy" ? "the proxy's certificate" : "the certificate";
  const problem = selfSigned
    ? `for ${quote(issuer)} is self-signed and not trusted`
    : `was issued by ${quote(issuer)}, which is not trusted`;
  return networkError(error, url.href, { description: `TLS failed: ${certificate} ${problem}` });
}
