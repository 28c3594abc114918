import ipaddr from "ipaddr.js";

type Rule = (host: string, port: number) => boolean;

/**
 * Reads `NO_PROXY`: names with all that is below them (also written `.name` or `*.name`), addresses, CIDR ranges, each
 * with a port if it is for that one alone, and `*` for everything; separated by commas or blanks.
 *
 * @returns whether an address is reached without a proxy. Names are compared as they are written, never looked up
 */
export function passesBy(noProxy: string): (url: URL) => boolean {
  const rules = noProxy.split(/[,\s]+/).flatMap((entry) => (entry === "" ? [] : [ruleOf(entry.toLowerCase())]));
  return (url) => {
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
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
  const [, name = "", port] = /^(.*?)(?::(\d{1,5}))?$/.exec(isIpv6(entry) ? `[${entry}]` : entry) ?? [];
  const wanted = name
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/^\*?\./, "")
    .replace(/\.$/, "");
  const same: (host: string) => boolean = ipaddr.isValid(wanted)
    ? (host) => isSame(host, wanted)
    : (host) => host === wanted || host.endsWith(`.${wanted}`);
  return (host, asked) => (port === undefined || Number(port) === asked) && same(host);
}

function isIpv6(entry: string): boolean {
  return ipaddr.IPv6.isValid(entry);
}

/** An IPv4 address in IPv6 clothes is the same address. */
function isSame(host: string, wanted: string): boolean {
  return ipaddr.isValid(host) && ipaddr.process(host).toString() === ipaddr.process(wanted).toString();
}

function isIn(host: string, base: ipaddr.IPv4 | ipaddr.IPv6, bits: number): boolean {
  if (!ipaddr.isValid(host)) return false;
  const address = ipaddr.process(host);
  return address.kind() === base.kind() && address.match(base, bits);
}
