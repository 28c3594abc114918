import { isIP } from "node:net";
import { AgentAuthError } from "../errors.js";
import { bareHost, isLoopbackHost } from "../http/address.js";
import {
  type AddressClass,
  classifyHost,
  type Exemptions,
  isExempt,
  mostPublic,
  policyFor,
  ruleOf,
} from "../http/address-class.js";
import { explainOverride } from "../http/refuse.js";
import { quote } from "../redact.js";
import type { PolicyOption } from "../remedy.js";

/** An address of a name. */
export interface HostAddress {
  /** An IPv4 or IPv6 address. */
  address: string;
  /** 4 or 6. */
  family: number;
}

/** Looks up every address of a name, with the hosts file of the machine. */
export type Lookup = (hostname: string) => Promise<readonly HostAddress[]>;

/** Checks every connection that is made on behalf of one server. */
export interface SsrfGuard {
  /**
   * All addresses of a host, looked up and checked: only those may be connected to.
   *
   * @throws `AgentAuthError` `bad_address`, or what the lookup threw
   */
  resolve(hostname: string): Promise<readonly HostAddress[]>;
  /** Checks a host as it is written: a literal address, or a name that the proxy resolves. */
  checkWritten(hostname: string): void;
  addressClass(): Promise<AddressClass>;
  /**
   * Called with the host of each response. A name that answers and was not looked up, because a test intercepts requests,
   * has no known address: it counts as public, and is not looked up later.
   */
  onResponse(hostname: string): void;
}

export interface SsrfGuardOptions {
  /** Hosts that may be less public than the server. */
  exemptions: Exemptions;
  lookup: Lookup;
  /** Whether the server is behind a proxy, so that its address is unknown: it counts as public. */
  isBehindProxy: boolean;
}

/**
 * Creates the guard of one server. A server that was public once stays so: a name that resolves into our network later
 * is a DNS rebinding attack.
 */
export function createSsrfGuard(server: string, { exemptions, lookup, isBehindProxy }: SsrfGuardOptions): SsrfGuard {
  const serverHost = bareHost(server);
  let knownClass = classifyHost(serverHost) ?? (isBehindProxy ? "public" : undefined);

  async function addressClass(): Promise<AddressClass> {
    knownClass ??= mostPublic(classesOf(await lookup(serverHost)));
    return knownClass;
  }

  function checkServer(hostname: string, addresses: readonly HostAddress[]): void {
    const classes = classesOf(addresses);
    const mostPublicClass = mostPublic([...classes, ...(knownClass === undefined ? [] : [knownClass])]);
    const lessPublic = addresses.find((_, nth) => mostPublicClass === "public" && classes[nth] !== "public");
    if (lessPublic && !isExempt(exemptions, hostname)) throw rebindingError(hostname, lessPublic.address);
    knownClass = mostPublicClass;
  }

  return {
    addressClass,
    onResponse(hostname) {
      if (bareHost(hostname) === serverHost) knownClass ??= "public";
    },
    checkWritten(hostname) {
      const written = classifyHost(hostname);
      if (written === undefined) return;
      if (!policyFor(knownClass, exemptions)(hostname, written)) throw addressBlockedError(hostname, hostname, written);
    },
    async resolve(hostname) {
      if (classifyHost(hostname) === "forbidden") throw addressBlockedError(hostname, hostname, "forbidden");
      const family = isIP(bareHost(hostname));
      const addresses = family > 0 ? [{ address: bareHost(hostname), family }] : await lookup(hostname);
      const classes = classesOf(addresses);
      const addressAt = (nth: number) => addresses[nth]?.address ?? "";
      const forbidden = classes.indexOf("forbidden");
      if (forbidden >= 0) throw addressBlockedError(hostname, addressAt(forbidden), "forbidden");
      const elsewhere = isLoopbackHost(hostname) ? classes.findIndex((found) => found !== "loopback") : -1;
      if (elsewhere >= 0) throw addressBlockedError(hostname, addressAt(elsewhere), "public");
      if (bareHost(hostname) === serverHost) checkServer(hostname, addresses);
      else if (classes.some((found) => found !== "public")) {
        const policy = policyFor(await addressClass(), exemptions);
        for (const [nth, found] of classes.entries()) {
          if (!policy(hostname, found)) throw addressBlockedError(hostname, addressAt(nth), found);
        }
      }
      return addresses;
    },
  };
}

/** The classes of addresses; an invalid address is forbidden. */
function classesOf(addresses: readonly HostAddress[]): AddressClass[] {
  return addresses.map(({ address }) => classifyHost(address) ?? "forbidden");
}

function addressBlockedError(hostname: string, address: string, addressClass: AddressClass): AgentAuthError {
  const { rule, override } = ruleOf(addressClass);
  const where = hostname === address ? "" : ` (${quote(address)})`;
  return blockedError(`the host ${quote(hostname)}${where} ${rule}`, override);
}

function rebindingError(hostname: string, address: string): AgentAuthError {
  return blockedError(
    `the host ${quote(hostname)} leads to ${quote(address)} beside public addresses, through which a remote server could reach this network (RFC 9728 section 7.7)`,
    "allowPrivateNetwork",
  );
}

function blockedError(message: string, override: PolicyOption | undefined): AgentAuthError {
  return new AgentAuthError("bad_address", message, {
    class: "refused",
    ...(override !== undefined && explainOverride(override)),
  });
}
