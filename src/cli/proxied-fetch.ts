import { Agent, EnvHttpProxyAgent, fetch } from "undici";
import { isLoopbackHost } from "../http/address.js";
import { explainProxyFailure, type Proxies } from "./proxy-failure.js";

/**
 * A `fetch` that goes through the proxies, and trusts the authorities `ca` in place of Node's own list where given.
 *
 * Agent and fetch come from the same copy of undici: Node's own fetch does not understand another version's agent. The
 * import is a plain one, and this module is loaded on use: of a CommonJS package in the bundle, `import()` gives no names.
 */
export function createProxiedFetch(
  proxies: Proxies,
  { noProxy, ca }: { noProxy: string; ca: string[] | undefined },
): typeof globalThis.fetch {
  const tls = ca === undefined ? {} : { ca };
  const direct = new Agent({ connect: tls });
  const proxied = new EnvHttpProxyAgent({
    httpsProxy: proxies.https ?? "",
    httpProxy: proxies.http ?? "",
    noProxy,
    connect: tls,
    requestTls: tls,
    proxyTls: tls,
  });
  const send = (input: Request, init?: RequestInit) => {
    // A service on this machine is never reached through another, which would see its token.
    const local = isLoopbackHost(new URL(input.url).hostname);
    const sent = fetch(input.url, {
      method: input.method,
      headers: [...input.headers],
      body: input.body,
      ...(input.body && { duplex: "half" }),
      ...init,
      dispatcher: local ? direct : proxied,
    } as Parameters<typeof fetch>[1]);
    return local ? sent : sent.catch((error: unknown) => explainProxyFailure(error, proxies, input.url));
  };
  return send as unknown as typeof globalThis.fetch;
}
