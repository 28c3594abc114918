import ipaddr from "ipaddr.js";
import { escapeText } from "../redact.js";
import type { PolicyOption } from "../remedy.js";
import { bareHost, isLoopbackHost, parseUrl } from "./address.js";
import { refusalError } from "./refuse.js";

/**
 * The class of an address: on this machine, in a private network, public; or `forbidden`, where nothing is ever sent:
 * link-local and metadata addresses, broadcast, multicast, reserved ranges.
 */
export type AddressClass = "loopback" | "private" | "public" | "forbidden";

// Metadata services of clouds, which return secrets, beyond the link-local addresses: Alibaba, Azure, Oracle (also IPv6), AWS, Google, Scaleway.
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
const INTERNAL_RANGES = ["192.0.0.0/24", "198.18.0.0/15"].map((cidr) => ipaddr.IPv4.parseCIDR(cidr));

const NON_PUBLIC_RANGES: Readonly<Record<string, AddressClass>> = {
  loopback: "loopback",
  private: "private",
  carrierGradeNat: "private",
  uniqueLocal: "private",
  deprecatedSiteLocal: "private",
  benchmarking: "private",
};
const PUBLIC_RANGES: ReadonlySet<string> = new Set(["unicast", "as112", "as112v6", "amt"]);

/** Every global unicast address that has been allocated (RFC 4291 section 2.4). */
const GLOBAL_UNICAST: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];
const LOCAL_NAT64: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("64:ff9b:1::"), 48];

/**
 * The class of a host, in any spelling that URLs and resolvers have for it.
 *
 * @param host the `hostname` of a URL, or an address as a resolver returns it
 * @returns undefined for a name, which has to be looked up
 */
export function classifyHost(host: string): AddressClass | undefined {
  const bare = bareHost(host);
  if (ipaddr.isValid(bare)) return classifyAddress(ipaddr.parse(bare));
  if (isLoopbackHost(bare)) return "loopback";
  return METADATA_NAMES.test(bare) ? "forbidden" : undefined;
}

function classifyAddress(address: ipaddr.IPv4 | ipaddr.IPv6): AddressClass {
  if (METADATA.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))) return "forbidden";
  const range = address.range();
  if (address instanceof ipaddr.IPv4) {
    if (INTERNAL_RANGES.some((cidr) => address.match(cidr))) return "private";
    return PUBLIC_RANGES.has(range) ? "public" : (NON_PUBLIC_RANGES[range] ?? "forbidden");
  }
  const inner = embeddedIpv4Of(address, range);
  if (inner !== undefined) {
    const addressClass = classifyAddress(inner);
    return addressClass === "public" && address.match(LOCAL_NAT64) ? "private" : addressClass;
  }
  return PUBLIC_RANGES.has(range) && address.match(GLOBAL_UNICAST)
    ? "public"
    : (NON_PUBLIC_RANGES[range] ?? "forbidden");
}

/** The IPv4 address that an address of a transition mechanism leads to. */
function embeddedIpv4Of(address: ipaddr.IPv6, range: string): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray();
  switch (range) {
    case "ipv4Mapped":
    case "rfc6145":
    case "rfc6052":
      return new ipaddr.IPv4(bytes.slice(12));
    case "6to4":
      return new ipaddr.IPv4(bytes.slice(2, 6));
    case "teredo":
      // Written with every bit inverted (RFC 4380 section 4).
      return new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff));
    default:
      return undefined;
  }
}

const MOST_PUBLIC_FIRST: readonly AddressClass[] = ["forbidden", "public", "private", "loopback"];

/** The most public of several classes: that of a name with several addresses. */
export function mostPublic(classes: readonly AddressClass[]): AddressClass {
  return MOST_PUBLIC_FIRST.find((addressClass) => classes.includes(addressClass)) ?? "forbidden";
}

/** Whether requests on behalf of a server may go to a host of this class. */
export type AddressPolicy = (hostname: string, addressClass: AddressClass) => boolean;

/** The hosts, as in URLs, for which the user has disabled the rule; `all` for every host that the server names. */
export type Exemptions = "all" | ReadonlySet<string>;

/** Whether the rule is disabled for a host; an IPv6 address is the same with and without its brackets. */
export function isExempt(exemptions: Exemptions, hostname: string): boolean {
  return exemptions === "all" || exemptions.has(hostname) || exemptions.has(`[${hostname}]`);
}

/**
 * The hosts that a server may name: none less public than itself, unless the user exempted it (RFC 9728 section 7.7).
 *
 * @param server the class of the server that the user named; undefined, where it is not known, counts as public
 */
export function policyFor(server: AddressClass | undefined, exemptions: Exemptions): AddressPolicy {
  const from = MOST_PUBLIC_FIRST.indexOf(server === "loopback" || server === "private" ? server : "public");
  return (hostname, addressClass) =>
    addressClass !== "forbidden" && (MOST_PUBLIC_FIRST.indexOf(addressClass) <= from || isExempt(exemptions, hostname));
}

const RULES: Readonly<Record<AddressClass, string>> = {
  loopback: "leads to this machine, which a remote server must not name (RFC 9728 section 7.7)",
  private: "leads into a private network, which a server outside of it must not name (RFC 9728 section 7.7)",
  forbidden: "leads to a link-local, metadata or reserved address, where nothing is ever sent (RFC 9728 section 7.7)",
  public: "leads away from this machine, which a name of this machine must not",
};

/** The rule that an address of this class breaks, to be read after it, and the option that disables it, where there is one. */
export function ruleOf(addressClass: AddressClass): { rule: string; override: PolicyOption | undefined } {
  const isOverridable = addressClass === "loopback" || addressClass === "private";
  return { rule: RULES[addressClass], override: isOverridable ? "allowPrivateNetwork" : undefined };
}

/** Which addresses a peer may name. */
export interface PeerPolicy {
  /** The hosts that the server may name. */
  bounds: AddressPolicy;
}

/**
 * Checks an address that a peer named before anything is sent to it: https (http only between servers on this
 * machine), no host less public than the server itself, no user or password, no fragment, no invisible characters.
 *
 * @returns the address, unchanged
 * @throws `AgentAuthError` `bad_address`
 */
export function checkAddress(value: unknown, field: string, from: string, policy: PeerPolicy): string {
  const error = (rule: string, override?: PolicyOption) =>
    refusalError("bad_address", { field, value, from, rule, override });
  const url = parseUrl(value);
  if (typeof value !== "string" || url === undefined) throw error("must be an absolute URL");
  if (url.protocol !== "https:" && url.protocol !== "http:") throw error("must be an https address");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname))
    throw error("must be an https address (OAuth 2.1 section 1.5)");
  const addressClass = classifyHost(url.hostname);
  if (addressClass !== undefined && !policy.bounds(url.hostname, addressClass)) {
    const { rule, override } = ruleOf(addressClass);
    throw error(rule, override);
  }
  if (url.username !== "" || url.password !== "") throw error("must not contain a user name or password");
  if (url.hash !== "" || value.includes("#")) throw error("must not have a fragment");
  if (escapeText(value) !== value || /[\s\\]/.test(value))
    throw error("must not contain blanks, backslashes or invisible characters");
  return value;
}

/**
 * The address checks of a runtime that can look names up. Without a `Network` an address is checked as it is written;
 * with one, every connection is checked by the addresses that its name resolves to.
 */
export interface Network {
  /**
   * Connects to a server that the user named, and to the hosts that the server names in turn.
   *
   * @param server the server's address
   * @param exemptions hosts that may be less public than the server, because the user said so
   */
  connectTo(server: URL, exemptions: Exemptions): NetworkConnection;
}

/** The connections on behalf of one server. */
export interface NetworkConnection {
  /**
   * Connects only to addresses that the rules allow, whatever name or redirect leads there; the addresses that were
   * checked are the ones connected to.
   *
   * It throws an `AgentAuthError` `bad_address` (class `refused`) that names the host, its address and the rule.
   */
  readonly fetch: typeof globalThis.fetch;
  /** The class of the server's address: that of its connections, else of its name. An unknown one counts as public. */
  addressClass(): Promise<AddressClass>;
}
