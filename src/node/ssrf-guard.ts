import { isIP } from "node:net";
import { AgentAuthError } from "../errors.js";
import { isLoopbackHost } from "../http/address.js";
import {
  type AddressClass,
  classifyHost,
  type Exemptions,
  isExempt,
  mostPublic,
  policyFor,
  ruleOf,
} from "../http/address-class.js";
import { quote } from "../redact.js";

/** An address of a name. */
export interface HostAddress {
  /** An IPv4 or IPv6 address. */
  address: string;
  /** 4 or 6. */
  family: number;
}

/** Looks up every address of a name, the machine's own list of hosts included. */
export type Lookup = (hostname: string) => Promise<readonly HostAddress[]>;

/** Judges every connection that is made on behalf of one server. */
export interface SsrfGuard {
  /**
   * All addresses of a host, looked up and judged: those, and no others, may be connected to.
   *
   * @throws `AgentAuthError` `bad_address`, or what the lookup threw
   */
  resolve(hostname: string): Promise<readonly HostAddress[]>;
  /** Judges a host as it is written: an address, or a name whose lookup is somebody else's business. */
  checkWritten(hostname: string): void;
  /** How far the server is. */
  reach(): Promise<AddressClass>;
}

/** What a guard goes by. */
export interface SsrfGuardOptions {
  /** Hosts that may be nearer than the server is. */
  lifted: Exemptions;
  lookup: Lookup;
  /** Whether the server is behind a proxy, so that where it is cannot be told from here: it counts as public. */
  isHidden: boolean;
}

/**
 * Makes the guard of one server. A server that was public once stays so: a name that leads into our network the next
 * time is one that changes its answers to get there.
 */
export function createSsrfGuard(server: string, { lifted, lookup, isHidden }: SsrfGuardOptions): SsrfGuard {
  const own = bare(server);
  let seen = classifyHost(own) ?? (isHidden ? "public" : undefined);

  async function reach(): Promise<AddressClass> {
    seen ??= mostPublic(reachesOf(await lookup(own)));
    return seen;
  }

  function judgeOwn(hostname: string, addresses: readonly HostAddress[]): void {
    const reaches = reachesOf(addresses);
    const far = mostPublic([...reaches, ...(seen === undefined ? [] : [seen])]);
    const nearer = addresses.find((_, nth) => far === "public" && reaches[nth] !== "public");
    if (nearer && !isExempt(lifted, hostname)) throw changing(hostname, nearer.address);
    seen = far;
  }

  return {
    reach,
    checkWritten(hostname) {
      const written = classifyHost(hostname);
      if (written === undefined || (written !== "forbidden" && bare(hostname) === own)) return;
      if (!policyFor(seen, lifted)(hostname, written)) throw refuse(hostname, hostname, written);
    },
    async resolve(hostname) {
      if (classifyHost(hostname) === "forbidden") throw refuse(hostname, hostname, "forbidden");
      const family = isIP(bare(hostname));
      const addresses = family > 0 ? [{ address: bare(hostname), family }] : await lookup(hostname);
      const reaches = reachesOf(addresses);
      const at = (nth: number) => addresses[nth]?.address ?? "";
      const worst = reaches.indexOf("forbidden");
      if (worst >= 0) throw refuse(hostname, at(worst), "forbidden");
      const elsewhere = isLoopbackHost(hostname) ? reaches.findIndex((found) => found !== "loopback") : -1;
      if (elsewhere >= 0) throw refuse(hostname, at(elsewhere), "public");
      if (bare(hostname) === own) judgeOwn(hostname, addresses);
      else if (reaches.some((found) => found !== "public")) {
        const bounds = policyFor(await reach(), lifted);
        for (const [nth, found] of reaches.entries()) {
          if (!bounds(hostname, found)) throw refuse(hostname, at(nth), found);
        }
      }
      return addresses;
    },
  };
}

function bare(hostname: string): string {
  return hostname
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

/** What is no address at all is nothing to connect to. */
function reachesOf(addresses: readonly HostAddress[]): AddressClass[] {
  return addresses.map(({ address }) => classifyHost(address) ?? "forbidden");
}

function refuse(hostname: string, address: string, reach: AddressClass): AgentAuthError {
  const { rule, override } = ruleOf(reach);
  const where = hostname === address ? "" : ` (${quote(address)})`;
  return refusal(`the host ${quote(hostname)}${where} ${rule}`, override);
}

function changing(hostname: string, address: string): AgentAuthError {
  return refusal(
    `the host ${quote(hostname)} leads to ${quote(address)} beside public addresses, by which a server elsewhere could get into this network (RFC 9728 section 7.7)`,
    "--allow-private-network",
  );
}

function refusal(message: string, override: string | undefined): AgentAuthError {
  return new AgentAuthError("bad_address", message, {
    class: "refused",
    hint: override === undefined ? undefined : `if you trust this server, ${override} lifts this rule for it`,
  });
}
