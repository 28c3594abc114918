import { AgentAuthError } from "../../errors.js";
import {
  type AddressPolicy,
  classifyHost,
  type Exemptions,
  type Network,
  policyFor,
} from "../../http/address-class.js";
import { networkError } from "../../http/network-error.js";
import { toNativeFetch } from "../../http/own-fetch.js";
import { userAgent } from "../../http/version.js";
import { quote } from "../../redact.js";
import type { Grant, GrantEndpoints } from "../model/grant.js";
import { OAuthHttp, type OAuthHttpOptions } from "./http.js";

/** HTTP clients for one MCP server and its issuer, with the address policy. */
export interface ServerConnection {
  /** The HTTP client for issuer and metadata requests. */
  readonly http: OAuthHttp;
  readonly fetch: typeof globalThis.fetch;
  /** The `User-Agent` of requests to the server that have none. */
  readonly userAgent: string;
  /**
   * The policy for addresses that the server names.
   *
   * @throws `AgentAuthError` `dns_failed` if the server's name does not resolve
   */
  addressPolicy(): Promise<AddressPolicy>;
}

/** The fields of a stored login that requests to its issuer need. */
export interface Remembered
  extends Pick<
    Grant,
    | ("issuer" | "namedIssuer" | "overrides" | "acceptedTokenType" | "resource")
    | ("authorizationParams" | "needsConsent")
  > {
  readonly endpoints: Partial<GrantEndpoints>;
}

export interface ConnectionOptions extends OAuthHttpOptions {
  /** Classifies addresses after DNS resolution. */
  network?: Network | undefined;
  /** The rule about addresses of private networks. */
  policy?: { allowPrivateNetwork?: boolean | undefined } | undefined;
}

/** The connections of one client. Only servers of the same origin share a connection and its cached documents. */
export class ConnectionPool {
  readonly #options: ConnectionOptions;
  readonly #connections = new Map<string, ServerConnection>();
  readonly #http: OAuthHttp;
  /** The server of the latest call without overrides: most clients have one, whose address is read once. */
  #latest: { server: string; connection: ServerConnection } | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#http = new OAuthHttp(options);
  }

  /**
   * The connection for a server.
   *
   * @param grant an earlier login there: its overrides remain in force for its issuer
   * @throws `AgentAuthError` `bad_address` for a server at a forbidden address
   */
  get(server: string, grant?: Remembered): ServerConnection {
    if (grant !== undefined && grant.overrides.length > 0) return this.#find(server, grant);
    if (this.#latest?.server !== server) this.#latest = { server, connection: this.#find(server) };
    return this.#latest.connection;
  }

  #find(server: string, grant?: Remembered): ServerConnection {
    const url = new URL(server);
    if (classifyHost(url.hostname) === "forbidden") throw forbiddenAddressError(server);
    const exemptions = this.#options.policy?.allowPrivateNetwork ? "all" : listExemptHosts(grant);
    const name = JSON.stringify([url.origin, exemptions === "all" ? exemptions : [...exemptions].sort()]);
    const known = this.#connections.get(name);
    if (known) return known;
    const connection = this.#connect(url, exemptions);
    this.#connections.set(name, connection);
    return connection;
  }

  #connect(server: URL, exemptions: Exemptions): ServerConnection {
    const { network, fetch } = this.#options;
    const agent = { userAgent: userAgent(this.#options.userAgent) };
    const literal = classifyHost(server.hostname);
    if (!network) {
      const bounds = policyFor(literal, exemptions);
      const send = toNativeFetch(fetch, true);
      return { ...agent, http: this.#http, fetch: send, addressPolicy: async () => bounds };
    }
    const connection = network.connectTo(server, exemptions);
    const rethrow = (error: unknown): never => {
      throw networkError(error, server.href);
    };
    return {
      ...agent,
      http: new OAuthHttp({ ...this.#options, fetch: connection.fetch }),
      fetch: toNativeFetch(connection.fetch, true),
      addressPolicy: async () => policyFor(literal ?? (await connection.addressClass().catch(rethrow)), exemptions),
    };
  }
}

/** The hosts of an issuer for which the user allowed private addresses. */
function listExemptHosts(grant: Remembered | undefined): ReadonlySet<string> {
  if (!grant?.overrides.includes("allowPrivateNetwork")) return new Set();
  const addresses = [grant.issuer, grant.namedIssuer, ...Object.values(grant.endpoints)];
  return new Set(addresses.flatMap((address) => (address === undefined ? [] : new URL(address).hostname)));
}

function forbiddenAddressError(server: string): AgentAuthError {
  const message = `the MCP server's address ${quote(server)} is link-local, of a metadata service or reserved: nothing is ever sent there`;
  return new AgentAuthError("bad_address", message, { class: "refused" });
}
