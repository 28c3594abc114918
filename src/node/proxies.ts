import { isLoopbackHost } from "../http/address.js";
import { bypassesProxy } from "./no-proxy.js";

/** The proxies (http:// or https://) by the scheme of the requested address; `http` also serves https where that has none. */
export interface Proxies {
  /** The proxy for https addresses. */
  https?: string | undefined;
  /** The proxy for http addresses. */
  http?: string | undefined;
}

/** The proxies that requests go through. */
export interface ProxyOptions {
  /** The proxies to go through. */
  proxies?: Proxies | undefined;
  /** The hosts reached without a proxy, in the form of the environment variable `NO_PROXY`. */
  noProxy?: string | undefined;
}

/** The proxy for an address; a server on this machine is never reached through a proxy, which would see its token. */
export function proxyChooser({ proxies = {}, noProxy = "" }: ProxyOptions): (url: URL) => string | undefined {
  const isBypassed = bypassesProxy(noProxy);
  return (url) => {
    if (isLoopbackHost(url.hostname) || isBypassed(url)) return undefined;
    return url.protocol === "https:" ? (proxies.https ?? proxies.http) : proxies.http;
  };
}
