import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher, fetch, ProxyAgent } from "undici";
import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import type { ClientCertificate } from "./client-certificate.js";
import { type ProxyOptions, proxyAuthorization, proxyChooser } from "./proxies.js";
import { explainProxyFailure } from "./proxy-failure.js";
import type { SsrfGuard } from "./ssrf-guard.js";
import { globalResponse, plainRequest } from "./undici-forms.js";

/** How connections are made. */
export interface DispatcherOptions extends ProxyOptions {
  /** The authorities to trust in place of Node's own list, PEM. */
  ca?: readonly string[] | undefined;
  /** Sent to every server that requests a certificate in the TLS handshake, never to a proxy. */
  clientCertificate?: ClientCertificate | undefined;
  /** Milliseconds without a byte of a response after which the request fails; 0 for never. Default 300,000. */
  idleTimeoutMs?: number | undefined;
}

/**
 * A `fetch` that uses the proxies, trusts the authorities, and connects to what the guard allows.
 *
 * Agent and fetch come from the same copy of undici: Node's own fetch does not understand another version's agent. The
 * import is static, and this module is loaded on use: `import()` of a bundled CommonJS package has no named exports.
 */
export function createFetch(options: DispatcherOptions, guard: SsrfGuard | undefined): typeof globalThis.fetch {
  const viaProxy = proxyChooser(options);
  const dispatcher = createDispatcher(options, guard, viaProxy);
  return async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
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
}

/** The guard's error, which fetch hides among the causes of "fetch failed", in an aggregate where several addresses failed. */
function refusalIn(thrown: unknown, depth = 0): AgentAuthError | undefined {
  if (isAgentAuthError(thrown)) return thrown;
  if (!(thrown instanceof Error) || depth > 8) return undefined;
  const errors = thrown instanceof AggregateError ? thrown.errors : [];
  for (const inner of [thrown.cause, ...errors]) {
    const found = refusalIn(inner, depth + 1);
    if (found) return found;
  }
  return undefined;
}

/** Every redirect is dispatched again, so that the guard and the choice of the proxy apply to each hop. */
function createDispatcher(
  { ca, clientCertificate, idleTimeoutMs: idleTimeout = 300_000 }: DispatcherOptions,
  guard: SsrfGuard | undefined,
  viaProxy: (url: URL) => string | undefined,
): Dispatcher {
  // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
  const tls = { rejectUnauthorized: true, ...(ca && { ca: [...ca] }) };
  const tlsOptions = { ...tls, ...clientCertificate };
  const timeouts = { headersTimeout: idleTimeout, bodyTimeout: idleTimeout };
  const direct = new Agent({ ...timeouts, connect: guard ? guardedConnector(guard, tlsOptions) : tlsOptions });
  const tunnels = new Map<string, Dispatcher>();
  const tunnelOf = (uri: string): Dispatcher => {
    const known = tunnels.get(uri);
    if (known) return known;
    // Without a token, undici throws for a password that has a "%" which encodes nothing.
    const token = proxyAuthorization(new URL(uri));
    const tunnel = new ProxyAgent({ ...timeouts, uri, ...(token && { token }), requestTls: tlsOptions, proxyTls: tls });
    tunnels.set(uri, tunnel);
    return tunnel;
  };
  return direct.compose((dispatch) => (options, handler) => {
    const url = new URL(String(options.origin));
    const proxy = viaProxy(url);
    if (proxy === undefined) return dispatch(options, handler);
    // The proxy resolves the name: only a literal address can be checked here.
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
    // A literal address is connected to without a lookup.
    guard.resolve(options.hostname).then(
      () => connect(options, callback),
      (error: unknown) => callback(error as Error, null),
    );
  };
}
