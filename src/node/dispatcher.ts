import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher, fetch, ProxyAgent } from "undici";
import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import type { ClientCertificate } from "./client-certificate.js";
import { type ProxyOptions, proxyChooser } from "./proxies.js";
import { explainProxyFailure } from "./proxy-failure.js";
import type { SsrfGuard } from "./ssrf-guard.js";
import { explainingTls } from "./tls-failure.js";
import { globalResponse, plainRequest } from "./undici-forms.js";

/** What decides how connections are made. */
export interface DispatcherOptions extends ProxyOptions {
  /** The authorities to trust in place of Node's own list, PEM. */
  ca?: readonly string[] | undefined;
  /** Shown to every server that asks for a certificate in the TLS handshake, never to a proxy. */
  clientCertificate?: ClientCertificate | undefined;
  /** Milliseconds without a byte of an answer after which it is given up; 0 for never. Default 300,000. */
  idleTimeoutMs?: number | undefined;
}

/**
 * A `fetch` that goes through the proxies, trusts the authorities, and connects where the guard lets it.
 *
 * Agent and fetch come from the same copy of undici: Node's own fetch does not understand another version's agent. The
 * import is a plain one, and this module is loaded on use: of a CommonJS package in the bundle, `import()` gives no names.
 */
export function createFetch(options: DispatcherOptions, guard: SsrfGuard | undefined): typeof globalThis.fetch {
  const viaProxy = proxyChooser(options);
  const dispatcher = createDispatcher(options, guard, viaProxy);
  const send = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const { url, settings } = await plainRequest(input, init);
    try {
      const answer = await fetch(url, { ...settings, dispatcher } as Parameters<typeof fetch>[1]);
      return globalResponse(answer as unknown as Response);
    } catch (error) {
      const proxy = viaProxy(new URL(url));
      const refusal = refusalIn(error);
      if (refusal !== undefined || proxy === undefined) throw refusal ?? error;
      return explainProxyFailure(error, proxy, url);
    }
  };
  return explainingTls(send as typeof globalThis.fetch, (url) => ({
    proxy: viaProxy(url),
    ca: options.ca,
    clientCertificate: options.clientCertificate,
    lookup: guard && guardedLookup(guard),
  }));
}

/** What the guard threw: fetch says "fetch failed" and hides it among the causes, where several addresses failed in a list. */
function refusalIn(thrown: unknown, depth = 0): AgentAuthError | undefined {
  if (isAgentAuthError(thrown)) return thrown;
  if (!(thrown instanceof Error) || depth > 8) return undefined;
  const several = thrown instanceof AggregateError ? thrown.errors : [];
  for (const one of [thrown.cause, ...several]) {
    const found = refusalIn(one, depth + 1);
    if (found) return found;
  }
  return undefined;
}

/** Every redirect is dispatched anew, so that each hop is judged and finds its own way out. */
function createDispatcher(
  { ca, clientCertificate, idleTimeoutMs: idleTimeout = 300_000 }: DispatcherOptions,
  guard: SsrfGuard | undefined,
  viaProxy: (url: URL) => string | undefined,
): Dispatcher {
  // Said in so many words, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
  const tls = { rejectUnauthorized: true, ...(ca && { ca: [...ca] }) };
  const own = { ...tls, ...clientCertificate };
  const patience = { headersTimeout: idleTimeout, bodyTimeout: idleTimeout };
  const direct = new Agent({ ...patience, connect: guard ? guardedConnector(guard, own) : own });
  const tunnels = new Map<string, Dispatcher>();
  const tunnelOf = (uri: string): Dispatcher => {
    const known = tunnels.get(uri) ?? new ProxyAgent({ ...patience, uri, requestTls: own, proxyTls: tls });
    tunnels.set(uri, known);
    return known;
  };
  return direct.compose((dispatch) => (options, handler) => {
    const url = new URL(String(options.origin));
    const proxy = viaProxy(url);
    if (proxy === undefined) return dispatch(options, handler);
    // The proxy looks the name up: what can be judged here is an address that is written as one.
    guard?.checkWritten(url.hostname);
    return tunnelOf(proxy).dispatch(options, handler);
  });
}

function guardedLookup(guard: SsrfGuard): LookupFunction {
  return (hostname, { all }, callback) => {
    guard.resolve(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (all) callback(null, [...addresses]);
        else callback(null, first?.address ?? "", first?.family ?? 0);
      },
      (error: unknown) => callback(error as Error, "", 0),
    );
  };
}

function guardedConnector(guard: SsrfGuard, tls: object): buildConnector.connector {
  const connect = buildConnector({ ...tls, lookup: guardedLookup(guard) } as buildConnector.BuildOptions);
  return (options, callback) => {
    if (isIP(options.hostname) === 0) return connect(options, callback);
    // What is an address already is connected to without a lookup.
    guard.resolve(options.hostname).then(
      () => connect(options, callback),
      (error: unknown) => callback(error as Error, null),
    );
  };
}
