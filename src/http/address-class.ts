import ipaddr from "ipaddr.js";
import { isLoopbackHost } from "./address.js";

/**
 * How far away an address is: on this machine, in a network that not everybody reaches, out in the open; or
 * `forbidden`, where nothing is ever sent: link-local and metadata addresses, broadcast, multicast, what is reserved.
 */
export type AddressClass = "loopback" | "private" | "public" | "forbidden";

// What clouds answer secrets at, beyond the link-local addresses: Alibaba, Azure, Oracle (also IPv6), AWS, Google, Scaleway.
const METADATA = [
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.192/32",
  "fd00:c1::a9fe:a9fe/128",
  "fd00:ec2::/32",
  "fd20:ce::254/128",
  "fd00:42::42/128",
].map((cidr) => ipaddr.parseCIDR(cidr));

const METADATA_NAMES =
  /^(?:(?:metadata|instance-data)(?:\.[\w.-]*internal)?|metadata\.goog|metadata\.tencentyun\.com)$/;

// Reserved for special use, and used inside of networks: protocol assignments (RFC 6890), benchmarks (RFC 2544).
const INSIDE = ["192.0.0.0/24", "198.18.0.0/15"].map((cidr) => ipaddr.IPv4.parseCIDR(cidr));

const NEAR: Readonly<Record<string, AddressClass>> = {
  loopback: "loopback",
  private: "private",
  carrierGradeNat: "private",
  uniqueLocal: "private",
  deprecatedSiteLocal: "private",
  benchmarking: "private",
};
const OPEN: ReadonlySet<string> = new Set(["unicast", "as112", "as112v6", "amt"]);

/** All of the global unicast addresses that were ever given out (RFC 4291 section 2.4). */
const GLOBAL: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];
const LOCAL_NAT64: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("64:ff9b:1::"), 48];

/**
 * How far a host is, in any spelling that URLs and resolvers have for it.
 *
 * @param host the `hostname` of a URL, or an address as a resolver gives it
 * @returns undefined for a name that says nothing by itself
 */
export function classifyHost(host: string): AddressClass | undefined {
  const bare = host
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
  if (ipaddr.isValid(bare)) return reachOfAddress(ipaddr.parse(bare));
  if (isLoopbackHost(bare)) return "loopback";
  return METADATA_NAMES.test(bare) ? "forbidden" : undefined;
}

function reachOfAddress(address: ipaddr.IPv4 | ipaddr.IPv6): AddressClass {
  if (METADATA.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))) return "forbidden";
  const range = address.range();
  if (address instanceof ipaddr.IPv4) {
    if (INSIDE.some((inside) => address.match(inside))) return "private";
    return OPEN.has(range) ? "public" : (NEAR[range] ?? "forbidden");
  }
  const inner = embedded(address, range);
  if (inner !== undefined) {
    const reach = reachOfAddress(inner);
    return reach === "public" && address.match(LOCAL_NAT64) ? "private" : reach;
  }
  return OPEN.has(range) && address.match(GLOBAL) ? "public" : (NEAR[range] ?? "forbidden");
}

/** The IPv4 address that traffic to an address of a transition mechanism ends at. */
function embedded(address: ipaddr.IPv6, range: string): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray();
  switch (range) {
    case "ipv4Mapped":
    case "rfc6145":
    case "rfc6052":
      return new ipaddr.IPv4(bytes.slice(12));
    case "6to4":
      return new ipaddr.IPv4(bytes.slice(2, 6));
    case "teredo":
      // Written with every bit turned over (RFC 4380 section 4).
      return new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff));
    default:
      return undefined;
  }
}

const FROM_FAR: readonly AddressClass[] = ["forbidden", "public", "private", "loopback"];

/** The farthest of several: what can be said of a name that has them all. */
export function mostPublic(reaches: readonly AddressClass[]): AddressClass {
  return FROM_FAR.find((reach) => reaches.includes(reach)) ?? "forbidden";
}

/** Whether requests on behalf of a server may go to a host that is so far away. */
export type AddressPolicy = (hostname: string, reach: AddressClass) => boolean;

/** The hosts, as in URLs, for which a person has lifted the rule; `all` for whatever the server names. */
export type Exemptions = "all" | ReadonlySet<string>;

/** Whether the rule is lifted for a host; an IPv6 address is the same with and without its brackets. */
export function isExempt(lifted: Exemptions, hostname: string): boolean {
  return lifted === "all" || lifted.has(hostname) || lifted.has(`[${hostname}]`);
}

/**
 * Where a server may lead: never nearer to us than it is itself, unless a person has said so (RFC 9728 section 7.7).
 *
 * @param server how far the server is that a person named; undefined where that is not known counts as public
 */
export function policyFor(server: AddressClass | undefined, lifted: Exemptions): AddressPolicy {
  const from = FROM_FAR.indexOf(server === "loopback" || server === "private" ? server : "public");
  return (hostname, reach) => reach !== "forbidden" && (FROM_FAR.indexOf(reach) <= from || isExempt(lifted, hostname));
}

const WORDS: Readonly<Record<AddressClass, string>> = {
  loopback: "leads to this machine, which a server elsewhere must not (RFC 9728 section 7.7)",
  private: "leads into a private network, which a server outside of it must not (RFC 9728 section 7.7)",
  forbidden: "leads to a link-local, metadata or reserved address, where nothing is ever sent (RFC 9728 section 7.7)",
  public: "leads away from this machine, which a name of this machine must not",
};

/** The rule that an address of this reach breaks, to be read after it, and the flag that lifts it, where there is one. */
export function ruleOf(reach: AddressClass): { rule: string; override: string | undefined } {
  const liftable = reach === "loopback" || reach === "private";
  return { rule: WORDS[reach], override: liftable ? "--allow-private-network" : undefined };
}
