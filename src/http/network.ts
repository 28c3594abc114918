import type { AddressClass, Exemptions } from "./address-class.js";

/**
 * What a runtime that can look names up adds to the rules about addresses: without it an address is judged by how it is
 * written, with it by where its name leads, on every connection.
 */
export interface Network {
  /**
   * The way to a server that a person named, and to those that it names in turn.
   *
   * @param server the server's address
   * @param lifted hosts that may be nearer than the server is, because a person said so
   */
  connectTo(server: URL, lifted: Exemptions): NetworkConnection;
}

/** How requests on behalf of one server leave. */
export interface NetworkConnection {
  /**
   * Connects to nothing that the rules do not allow, whatever name or redirect leads there; the addresses that were
   * checked are the ones connected to.
   *
   * It throws an `AgentAuthError` `bad_address` (class `refused`) that names the host, its address and the rule.
   */
  readonly fetch: typeof globalThis.fetch;
  /** How far the server is: where connections to it went, else where its name leads. What cannot be told is public. */
  addressClass(): Promise<AddressClass>;
}
