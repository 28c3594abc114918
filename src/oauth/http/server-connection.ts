import { AgentAuthError } from "../../errors.js";
import { type Bounds, boundsOf, type Lifted, reachOf } from "../../http/address-class.js";
import type { Network } from "../../http/network.js";
import { networkError } from "../../http/network-error.js";
import { quote } from "../../redact.js";
import type { Grant, GrantEndpoints } from "../grant/grant.js";
import { OAuthHttp, type OAuthHttpOptions } from "./http.js";

/** How requests on behalf of one MCP server leave, and where they may go. */
export interface Way {
  /** The requests of the flow. */
  readonly http: OAuthHttp;
  /** The requests to the server itself. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Where those may lie that the server names.
   *
   * @throws `AgentAuthError` `dns_failed` where the server's name leads nowhere
   */
  bounds(): Promise<Bounds>;
}

/** What is remembered of a login for requests to its issuer. */
export interface Remembered extends Pick<Grant, "issuer" | "overrides"> {
  readonly endpoints: Partial<GrantEndpoints>;
}

/** What the ways of a client depend on. */
export interface WayOptions extends OAuthHttpOptions {
  /** What judges addresses by where their names lead. */
  network?: Network | undefined;
  /** Lets requests go to addresses of private networks. */
  allowPrivateNetwork?: boolean | undefined;
}

/** The ways of one client. Servers of one origin share theirs, with its connections and documents, and no others do. */
export class Ways {
  readonly #options: WayOptions;
  readonly #known = new Map<string, Way>();
  readonly #http: OAuthHttp;

  constructor(options: WayOptions) {
    this.#options = options;
    this.#http = new OAuthHttp(options);
  }

  /**
   * The way to a server.
   *
   * @param grant a login there: what a person lifted for it stays lifted for its issuer
   * @throws `AgentAuthError` `bad_address` for a server at an address where nothing is ever sent
   */
  to(server: string, grant?: Remembered): Way {
    const url = new URL(server);
    if (reachOf(url.hostname) === "forbidden") throw forbidden(server);
    const lifted = this.#options.allowPrivateNetwork ? "all" : hostsOf(grant);
    const name = JSON.stringify([url.origin, lifted === "all" ? lifted : [...lifted].sort()]);
    const known = this.#known.get(name);
    if (known) return known;
    const way = this.#make(url, lifted);
    this.#known.set(name, way);
    return way;
  }

  #make(server: URL, lifted: Lifted): Way {
    const { network, fetch } = this.#options;
    const literal = reachOf(server.hostname);
    if (!network) {
      const bounds = boundsOf(literal, lifted);
      const send: typeof globalThis.fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
      return { http: this.#http, fetch: send, bounds: async () => bounds };
    }
    const way = network.wayTo(server, lifted);
    const lost = (error: unknown): never => {
      throw networkError(error, server.href);
    };
    return {
      http: new OAuthHttp({ ...this.#options, fetch: way.fetch }),
      fetch: way.fetch,
      bounds: async () => boundsOf(literal ?? (await way.reach().catch(lost)), lifted),
    };
  }
}

/** The hosts of an issuer for which a person has lifted the rule. */
function hostsOf(grant: Remembered | undefined): ReadonlySet<string> {
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
