import { IDP_PATH } from "./machine.js";
import { PoolServer, type PoolServerSettings } from "./pool-server.js";

/** What the authorization servers need. */
export type PoolServersSettings = Omit<PoolServerSettings, "poolId" | "resources" | "vouchesAt">;

/** The path of the first pool's MCP server. */
export const MCP_PATH = "/mcp";

/** The authorization servers of all pools, each created on first use. */
export class PoolServers {
  readonly #settings: PoolServersSettings;
  readonly #servers = new Map<string, PoolServer>();

  #idp: PoolServer | undefined;

  constructor(settings: PoolServersSettings) {
    this.#settings = settings;
  }

  /** The server of a pool; `undefined` where there is no such pool. */
  find(poolId: string): PoolServer | undefined {
    const known = this.#servers.get(poolId);
    const { data, origin } = this.#settings;
    if (known || !data.hasPool(poolId)) return known;
    const own = `${origin}${MCP_PATH}/${poolId}`;
    const server = new PoolServer({
      ...this.#settings,
      poolId,
      resources: poolId === data.first.pool ? [origin + MCP_PATH, own] : [own],
    });
    this.#servers.set(poolId, server);
    return server;
  }

  /** The identity provider; `undefined` without machine grants. */
  get identityProvider(): PoolServer | undefined {
    const { origin, machines } = this.#settings;
    const resources = [origin + IDP_PATH] as const;
    const poolId = IDP_PATH.slice(1);
    this.#idp ??= machines && new PoolServer({ ...this.#settings, poolId, resources, vouchesAt: this });
    return this.#idp;
  }

  /** Like {@link find}. @throws TypeError where there is no such pool */
  get(poolId: string): PoolServer {
    const server = this.find(poolId);
    if (!server) throw new TypeError(`the sandbox has no pool ${poolId}`);
    return server;
  }

  /** Whether a URL is the issuer of a pool. */
  isIssuer(issuer: string): boolean {
    const { origin } = this.#settings;
    return issuer.startsWith(`${origin}/`) && this.find(issuer.slice(origin.length + 1)) !== undefined;
  }

  /** The server of the pool that the MCP server at a path belongs to; `undefined` where there is none. */
  findForMcp(path: string): PoolServer | undefined {
    if (path === MCP_PATH) return this.find(this.#settings.data.first.pool);
    return path.startsWith(`${MCP_PATH}/`) ? this.find(path.slice(MCP_PATH.length + 1)) : undefined;
  }
}
