import { isLoopbackHost } from "../http/address.js";
import { passesBy } from "./no-proxy.js";

/** The proxies, http:// or https://, for each scheme of the address asked; `http` also serves https where that has none. */
export interface Proxies {
  /** The proxy for https addresses. */
  https?: string | undefined;
  /** The proxy for http addresses. */
  http?: string | undefined;
}

/** Through which proxies requests go. */
export interface ProxyOptions {
  /** The proxies to go through. */
  proxies?: Proxies | undefined;
  /** What is reached without a proxy, in the form of the environment variable `NO_PROXY`. */
  noProxy?: string | undefined;
}

/** The proxy for an address; a server on this machine is never reached through another, which would see its token. */
export function proxyChooser({ proxies = {}, noProxy = "" }: ProxyOptions): (url: URL) => string | undefined {
  const isExcepted = passesBy(noProxy);
  return (url) => {
    if (isLoopbackHost(url.hostname) || isExcepted(url)) return undefined;
    return url.protocol === "https:" ? (proxies.https ?? proxies.http) : proxies.http;
  };
}
