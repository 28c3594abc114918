import ipaddr from "ipaddr.js";
import { bareHost } from "../http/address.js";

type Rule = (host: string, port: number) => boolean;

/**
 * Reads `NO_PROXY`: names including their subdomains (also written `.name` or `*.name`), addresses, CIDR ranges, each
 * optionally with a port, and `*` for everything; separated by commas or blanks.
 *
 * @returns whether an address is reached without a proxy. Names are compared as they are written, never looked up
 */
export function bypassesProxy(noProxy: string): (url: URL) => boolean {
  const rules = noProxy.split(/[,\s]+/).flatMap((entry) => (entry === "" ? [] : [ruleOf(entry.toLowerCase())]));
  return (url) => {
    const host = bareHost(url.hostname);
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    return rules.some((rule) => rule(host, port));
  };
}

function ruleOf(entry: string): Rule {
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
