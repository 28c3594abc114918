import type { AddressClass, Exemptions } from "./address-class.js";

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
