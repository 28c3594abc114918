import ipaddr from "ipaddr.js";
import { AgentAuthError } from "../errors.js";
import { bareHost, isLoopbackHost, percentDecoded } from "../http/address.js";

/** The proxies (http:// or https://) by the scheme of the requested address; `http` also serves https where that has none. */
export interface Proxies {
  /** The proxy for https addresses. */
  https?: string | undefined;
  /** The proxy for http addresses. */
  http?: string | undefined;
  /** Whether servers on this machine are reached through them too. Default: no. */
  forLoopback?: boolean | undefined;
}

/** The proxies that requests go through. */
export interface ProxyOptions {
  /** The proxies to go through. */
  proxies?: Proxies | undefined;
  /** The hosts reached without a proxy, in the form of the environment variable `NO_PROXY`. */
  noProxy?: string | undefined;
}

/** The proxy for an address; a server on this machine has none by default, since the proxy of a network cannot reach it. */
export function proxyChooser({ proxies = {}, noProxy = "" }: ProxyOptions): (url: URL) => string | undefined {
  const isBypassed = bypassesProxy(noProxy);
  return (url) => {
    if ((!proxies.forLoopback && isLoopbackHost(url.hostname)) || isBypassed(url)) return undefined;
    return url.protocol === "https:" ? (proxies.https ?? proxies.http) : proxies.http;
  };
}

/** The credentials in the address of a proxy as a `Proxy-Authorization` header; undefined where it has none. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  return `Basic ${Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`).toString("base64")}`;
}

type BypassRule = (host: string, port: number) => boolean;

/**
 * Reads `NO_PROXY`: names including their subdomains (also written `.name` or `*.name`), addresses, CIDR ranges, each
 * optionally with a port, and `*` for everything; separated by commas or blanks.
 *
 * @returns whether an address is reached without a proxy. Names are compared as they are written, never looked up
 */
export function bypassesProxy(noProxy: string): (url: URL) => boolean {
  // An empty entry, between a comma and a blank, names no host.
  const rules = noProxy.split(/[,\s]/).map(ruleOf);
  return (url) => {
    const host = bareHost(url.hostname);
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    return rules.some((rule) => rule(host, port));
  };
}

function ruleOf(entry: string): BypassRule {
  if (entry === "*") return () => true;
  if (ipaddr.isValidCIDR(entry)) {
    const [base, bits] = ipaddr.parseCIDR(entry);
    return (host) => isIn(host, base, bits);
  }
  const [, name = "", port] = /^(.*?)(?::(\d{1,5}))?$/.exec(ipaddr.IPv6.isValid(entry) ? `[${entry}]` : entry) ?? [];
  const expected = bareHost(name).replace(/^\*?\./, "");
  const matches: (host: string) => boolean = ipaddr.isValid(expected)
    ? (host) => isSame(host, expected)
    : (host) => host === expected || host.endsWith(`.${expected}`);
  return (host, requestedPort) => (port === undefined || Number(port) === requestedPort) && matches(host);
}

/** An IPv4-mapped IPv6 address is the same as its IPv4 address. */
function isSame(host: string, expected: string): boolean {
  return ipaddr.isValid(host) && ipaddr.process(host).toString() === ipaddr.process(expected).toString();
}

function isIn(host: string, base: ipaddr.IPv4 | ipaddr.IPv6, bits: number): boolean {
  if (!ipaddr.isValid(host)) return false;
  const address = ipaddr.process(host);
  return address.kind() === base.kind() && address.match(base, bits);
}

/** The failure of a proxy, or of the connection to it. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
  /** What it answered in place of a tunnel. */
  readonly status: number | undefined;

  constructor(cause: Error | undefined, status?: number) {
    super(cause?.message ?? `HTTP ${status}`, cause && { cause });
    this.status = status;
  }
}

/**
 * The failure of a proxy as `proxy_failed` with the proxy's name; undefined for a failure of TLS, which is explained as that
 * of a server.
 *
 * With a proxy, a refused connection and an unknown host name are those of the proxy, not of the service. What the proxy
 * reports of the service is the service's failure (RFC 9110 sections 15.6.3 to 15.6.5).
 */
export function explainProxyFailure(error: ProxyError, proxy: string, url: URL): AgentAuthError | undefined {
  const { status = 0 } = error;
  const { host } = new URL(proxy);
  if (status >= 502 && status <= 504) {
    const message = `${url.host}: no connection, as the proxy ${host} reports (HTTP ${status})`;
    const hint = "check that the service runs at this address and port, and that the proxy may reach it";
    const code = status === 504 ? "timeout" : "connection_refused";
    return new AgentAuthError(code, message, { class: "unavailable", hint, cause: error });
  }
  const reason = reasonOf(error);
  if (reason === undefined) return undefined;
  const message = `${url.host}: the proxy ${host} ${reason}`;
  return new AgentAuthError("proxy_failed", message, { class: "unavailable", cause: error });
}

function reasonOf({ status, cause }: ProxyError): string | undefined {
  if (status === 407) return "requires a user name and password, or rejected those given (HTTP 407)";
  if (status !== undefined) return `refused the connection (HTTP ${status})`;
  const { code } = cause as { code?: unknown };
  if (typeof code !== "string") return "cannot be reached";
  return /^E(?!PROTO|RR_)/.test(code) ? `cannot be reached (${code})` : undefined;
}
