import { isLoopbackHost } from "../http/address.js";
import { percentDecoded } from "../http/url.js";
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

/** The credentials in the address of a proxy as a `Proxy-Authorization` header; undefined where it has none. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  return `Basic ${Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`).toString("base64")}`;
}
