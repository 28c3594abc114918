import type { AgentAuthError } from "../errors.js";
import { networkError, systemCodeOf } from "../http/network-error.js";
import { quote } from "../redact.js";
import type { TlsProbe, TlsProbeOptions } from "./tls-probe.js";

/** How to look at the server at an address. */
export type WayToLook = (url: URL) => TlsProbeOptions;

/** What Node says of a certificate that leads to no authority that it knows. */
const UNTRUSTED = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:GET_ISSUER|VERIFY)_?\w*)$/;
/** What a server that wants a client certificate looks like that hangs up on those who have none. */
const HUNG_UP = /^(?:UND_ERR_SOCKET|ECONNRESET|EPIPE)$/;

/**
 * A `fetch` whose TLS failures say who issued the certificate that is not trusted, and whether a client certificate was
 * wanted. For that it connects once more to each server that failed so, and sends nothing.
 */
export function explainingTls(send: typeof globalThis.fetch, connectTo: WayToLook): typeof globalThis.fetch {
  const seen = new Map<string, Promise<TlsProbe | undefined>>();
  const look = (url: URL, forAlert: boolean) => {
    const known =
      seen.get(url.origin) ?? import("./tls-probe.js").then(({ probeTls }) => probeTls(url, connectTo(url), forAlert));
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
      throw explained(error, url, hungUp, await look(url, hungUp)) ?? error;
    }
  };
}

function explained(error: unknown, url: URL, hungUp: boolean, look: TlsProbe | undefined): AgentAuthError | undefined {
  if (look === undefined) return undefined;
  const { alert, issuer, selfSigned, whose } = look;
  if (hungUp) {
    if (alert === undefined) return undefined;
    const says = "the server ended the TLS handshake, as one does that wants a client certificate";
    return networkError(error, url.href, { systemCode: alert, says });
  }
  if (issuer === undefined) return undefined;
  const certificate = whose === "proxy" ? "the proxy's certificate" : "its certificate";
  const by = selfSigned ? `vouches for itself, as ${quote(issuer)}` : `comes from ${quote(issuer)}`;
  return networkError(error, url.href, { says: `TLS failed: ${certificate} ${by}, which is not trusted here` });
}
