import { AgentAuthError } from "../../errors.js";
import { type AddressPolicy, classifyHost, type Exemptions, policyFor } from "../../http/address-class.js";
import type { Network } from "../../http/network.js";
import { networkError } from "../../http/network-error.js";
import { quote } from "../../redact.js";
import type { Grant, GrantEndpoints } from "../grant/grant.js";
import { OAuthHttp, type OAuthHttpOptions } from "./http.js";

/** How requests on behalf of one MCP server leave, and where they may go. */
export interface ServerConnection {
  /** The requests of the flow. */
  readonly http: OAuthHttp;
  /** The requests to the server itself. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Where those may lie that the server names.
   *
   * @throws `AgentAuthError` `dns_failed` where the server's name leads nowhere
   */
  addressPolicy(): Promise<AddressPolicy>;
}

/** What is remembered of a login for requests to its issuer. */
export interface Remembered extends Pick<Grant, "issuer" | "overrides"> {
  readonly endpoints: Partial<GrantEndpoints>;
}

/** What the ways of a client depend on. */
export interface ConnectionOptions extends OAuthHttpOptions {
  /** What judges addresses by where their names lead. */
  network?: Network | undefined;
  /** Lets requests go to addresses of private networks. */
  allowPrivateNetwork?: boolean | undefined;
}

/** The ways of one client. Servers of one origin share theirs, with its connections and documents, and no others do. */
export class ConnectionPool {
  readonly #options: ConnectionOptions;
  readonly #connections = new Map<string, ServerConnection>();
  readonly #http: OAuthHttp;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#http = new OAuthHttp(options);
  }

  /**
   * The way to a server.
   *
   * @param grant a login there: what the user lifted for it stays lifted for its issuer
   * @throws `AgentAuthError` `bad_address` for a server at an address where nothing is ever sent
   */
  get(server: string, grant?: Remembered): ServerConnection {
    const url = new URL(server);
    if (classifyHost(url.hostname) === "forbidden") throw forbidden(server);
    const lifted = this.#options.allowPrivateNetwork ? "all" : exemptHosts(grant);
    const name = JSON.stringify([url.origin, lifted === "all" ? lifted : [...lifted].sort()]);
    const known = this.#connections.get(name);
    if (known) return known;
    const way = this.#connect(url, lifted);
    this.#connections.set(name, way);
    return way;
  }

  #connect(server: URL, lifted: Exemptions): ServerConnection {
    const { network, fetch } = this.#options;
    const literal = classifyHost(server.hostname);
    if (!network) {
      const bounds = policyFor(literal, lifted);
      const send: typeof globalThis.fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
      return { http: this.#http, fetch: send, addressPolicy: async () => bounds };
    }
    const way = network.connectTo(server, lifted);
    const lost = (error: unknown): never => {
      throw networkError(error, server.href);
    };
    return {
      http: new OAuthHttp({ ...this.#options, fetch: way.fetch }),
      fetch: way.fetch,
      addressPolicy: async () => policyFor(literal ?? (await way.addressClass().catch(lost)), lifted),
    };
  }
}

/** The hosts of an issuer for which the user has lifted the rule. */
function exemptHosts(grant: Remembered | undefined): ReadonlySet<string> {
  if (!grant?.overrides.includes("allowPrivateNetwork")) return new Set();
  const addresses = [grant.issuer, ...Object.values(grant.endpoints)];
  return new Set(addresses.flatMap((address) => (address === undefined ? [] : new URL(address).hostname)));
}

function forbidden(server: string): AgentAuthError {
  return new AgentAuthError(
    "bad_address",
    `the MCP server's address ${quote(server)} is link-local, of a metadata service or reserved: nothing is ever sent there`,
    { class: "refused" },
  );
}
