import { escapeText } from "../redact.js";
import type { PolicyOption } from "../remedy.js";
import { bareHost, isLoopbackHost, parseUrl } from "./address.js";
import { refusalError } from "./refuse.js";

/**
 * The class of an address: on this machine, in a private network, public; or `forbidden`, where nothing is ever sent:
 * link-local and metadata addresses, broadcast, multicast, reserved ranges.
 */
export type AddressClass = "loopback" | "private" | "public" | "forbidden";

const METADATA_NAMES =
  /^(?:(?:metadata|instance-data)(?:\.[\w.-]*internal)?|metadata\.goog|metadata\.tencentyun\.com)$/;

/**
 * The blocks of addresses (IANA's registries of special-purpose addresses), the first that fits an address decides. A package
 * for addresses would be a tenth of what a browser loads for a resource server.
 */
const IPV4: readonly (readonly [AddressClass, ...string[]])[] = [
  // Metadata services of clouds, which return secrets: Alibaba, Azure, Oracle. Those of others are link-local.
  ["forbidden", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"],
  ["loopback", "127.0.0.0/8"],
  ["private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"],
  // Reserved for special use, and used inside of networks: protocol assignments (RFC 6890), benchmarks (RFC 2544).
  ["private", "192.0.0.0/24", "198.18.0.0/15"],
  ["forbidden", "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"],
  ["forbidden", "192.0.2.0/24", "192.88.99.0/24", "198.51.100.0/24", "203.0.113.0/24"],
  ["public", "0.0.0.0/0"],
];
const IPV6: typeof IPV4 = [
  // Metadata services: Oracle, AWS, Google, Scaleway.
  ["forbidden", "fd00:c1::a9fe:a9fe/128", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128"],
  ["loopback", "::1/128"],
  ["private", "fc00::/7", "fec0::/10", "2001:2::/48"],
  // Relays (RFC 7450, RFC 7535), in blocks that are reserved as a whole.
  ["public", "2001:3::/32", "2001:4:112::/48"],
  ["forbidden", "2001::/23", "2001:db8::/32", "3fff::/20"],
  // Every global unicast address that has been allocated (RFC 4291 section 2.4).
  ["public", "2000::/3"],
  ["forbidden", "::/0"],
];

/** Blocks whose addresses lead to the IPv4 address that begins at a bit of theirs. */
const TRANSITION = {
  /** RFC 4291, RFC 2765, RFC 6052. */
  mapped: [["::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"], 96],
  /** RFC 8215: inside of networks. */
  local: [["64:ff9b:1::/48"], 96],
  /** RFC 3056. */
  sixToFour: [["2002::/16"], 16],
  /** RFC 4380: every bit inverted. */
  teredo: [["2001::/32"], 96],
} as const;

/**
 * The class of a host, in any spelling that URLs and resolvers have for it.
 *
 * @param host the `hostname` of a URL, or an address as a resolver returns it
 * @returns undefined for a name, which has to be looked up
 */
export function classifyHost(host: string): AddressClass | undefined {
  const bare = bareHost(host);
  const bits = addressBits(bare);
  if (bits !== undefined) return classifyAddress(bits);
  if (isLoopbackHost(bare)) return "loopback";
  return METADATA_NAMES.test(bare) ? "forbidden" : undefined;
}

function classifyAddress(bits: string): AddressClass {
  const blocks = bits.length === 32 ? IPV4 : IPV6;
  for (const [name, [prefixes, at]] of bits.length === 32 ? [] : Object.entries(TRANSITION)) {
    if (!prefixes.some((prefix) => isIn(bits, prefix))) continue;
    const inner = bits.slice(at, at + 32);
    const inverted = inner.replace(/./g, (bit) => (bit === "0" ? "1" : "0"));
    const addressClass = classifyAddress(name === "teredo" ? inverted : inner);
    return name === "local" && addressClass === "public" ? "private" : addressClass;
  }
  return blocks.find(([, ...prefixes]) => prefixes.some((prefix) => isIn(bits, prefix)))?.[0] ?? "forbidden";
}

/** The bits that the addresses of a block begin with. */
const beginnings = new Map<string, string>();

function isIn(bits: string, block: string): boolean {
  let prefix = beginnings.get(block);
  if (prefix === undefined) {
    const [base = "", length] = block.split("/");
    prefix = (addressBits(base) ?? "").slice(0, Number(length));
    beginnings.set(block, prefix);
  }
  return bits.startsWith(prefix);
}

/** The bits of an address, 32 or 128 digits; undefined for a name. */
function addressBits(bare: string): string | undefined {
  const [, address = ""] = /^([\da-fx.:]+)(?:%.*)?$/.exec(bare) ?? [];
  // The parser of URLs writes every spelling of an address in one way, as fetch does.
  const host = parseUrl(`http://${address.includes(":") ? `[${address}]` : address}`)?.hostname ?? "";
  if (/^\d+(?:\.\d+){3}$/.test(host)) return binary(host.split("."), 10, 8);
  if (!host.startsWith("[")) return undefined;
  const [head = [], tail = []] = host
    .slice(1, -1)
    .split("::")
    .map((side) => side.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(8 - head.length - tail.length).fill("0");
  return binary([...head, ...zeros, ...tail], 16, 16);
}

function binary(parts: readonly string[], base: number, width: number): string {
  return parts.map((part) => Number.parseInt(part, base).toString(2).padStart(width, "0")).join("");
}

const MOST_PUBLIC_FIRST: readonly AddressClass[] = ["forbidden", "public", "private", "loopback"];

/** The most public of several classes: that of a name with several addresses. */
export function mostPublic(classes: readonly AddressClass[]): AddressClass {
  return MOST_PUBLIC_FIRST.find((addressClass) => classes.includes(addressClass)) ?? "forbidden";
}

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
export function findRule(addressClass: AddressClass): { rule: string; override: PolicyOption | undefined } {
  const isOverridable = addressClass === "loopback" || addressClass === "private";
  return { rule: RULES[addressClass], override: isOverridable ? "allowPrivateNetwork" : undefined };
}

export interface PeerPolicy {
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
    const { rule, override } = findRule(addressClass);
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
