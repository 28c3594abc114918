import { Lru } from "../../http/lru.js";
import { splitScope } from "../../oauth/model/scope.js";
import type { SandboxData } from "../data/data.js";
import type { SandboxResponse } from "../http/sandbox-response.js";
import { addIdJag, addJwtBearer, type IssuerList, idpClients } from "./assertions.js";
import { type ConfigurationSettings, configurationOf, machineClients } from "./configuration.js";
import { type ForwardedRequest, inProcessRequest } from "./in-process-request.js";
import { type AccessTokenFacts, createSigningKey, readAccessToken, type SigningKey } from "./keys.js";
import { LoginDevices } from "./login-devices.js";
import { IDP_PATH } from "./machine.js";
import { OAuthStore } from "./oauth-store.js";
import {
  type ClientToken,
  loadOidc,
  type OidcAccessToken,
  type OidcContext,
  type OidcErrors,
  type OidcProofs,
  type OidcProvider,
} from "./oidc.js";
import { addTokenExchange } from "./token-exchange.js";

/** What the authorization server of a pool needs. */
export interface PoolServerSettings extends Pick<ConfigurationSettings, "oauth" | "clock" | "machines" | "resources"> {
  origin: string;
  poolId: string;
  data: SandboxData;
  /** Set for the identity provider, which vouches for users at these servers. */
  vouchesAt?: IssuerList;
}

/** The started authorization server. */
export interface RunningServer {
  provider: OidcProvider;
  store: OAuthStore;
  /** Answers a request, whose `url` is the path below the pool's. */
  answer(request: Omit<ForwardedRequest, "originalUrl">): Promise<SandboxResponse>;
}

const MAX_TOKENS = 10_000;

/** The authorization server of one pool, on oidc-provider, which is loaded and started on first use. */
export class PoolServer {
  /** Where it is mounted: the path of its issuer. */
  readonly path: string;
  /** Its issuer identifier. */
  readonly issuer: string;
  readonly #settings: PoolServerSettings;
  readonly #key: SigningKey;
  readonly #loginDevices: LoginDevices;
  /** The grants of the issued JWTs by `jti`. */
  readonly #grants = new Lru<string>(MAX_TOKENS);
  #running: Promise<RunningServer> | undefined;

  constructor(settings: PoolServerSettings) {
    const { origin, poolId, data, clock, machines, vouchesAt } = settings;
    this.#settings = settings;
    this.#key = (vouchesAt && machines?.key("idp")) ?? createSigningKey();
    this.path = `/${poolId}`;
    this.issuer = origin + this.path;
    this.#loginDevices = new LoginDevices(data, clock, poolId);
  }

  /** The server, started if it is not yet. */
  run(): Promise<RunningServer> {
    this.#running ??= this.#start();
    return this.#running;
  }

  /** The facts of an access token of this server; `undefined` for any other token and an expired one. */
  async inspect(token: string): Promise<AccessTokenFacts | undefined> {
    const { clock } = this.#settings;
    const facts = readAccessToken(token, this.issuer, this.#key, clock.now() / 1000);
    const grantId = this.#grants.get(facts?.id ?? "");
    if (facts) return { ...facts, ...(grantId !== undefined && { grantId }) };
    const { provider } = await this.run();
    const found = (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
    return found?.isValid ? opaqueFacts(found, clock.skew) : undefined;
  }

  async #start(): Promise<RunningServer> {
    const { oauth, clock, machines, vouchesAt } = this.#settings;
    const { Provider, errors, proofs } = await loadOidc();
    const store = new OAuthStore({
      clock,
      reuseGrace: oauth.refreshReuseGraceSeconds,
      reused: () => new errors.InvalidGrant("used already"),
    });
    const provider = new Provider(
      this.issuer,
      configurationOf({
        ...this.#settings,
        store,
        errors,
        path: this.path,
        key: this.#key,
        loginDevices: this.#loginDevices,
        clients: machines ? (vouchesAt ? idpClients : machineClients)(machines, oauth) : [],
      }),
    );
    this.#extend(provider, store, { errors, proofs });
    const callback = provider.callback();
    // The headers below say where clients reach the server, whatever they sent: oidc-provider builds its URLs from these.
    provider.proxy = true;
    const { host, protocol } = new URL(this.issuer);
    const reached = { host, "x-forwarded-host": host, "x-forwarded-proto": protocol.slice(0, -1) };
    return {
      provider,
      store,
      answer: (request) =>
        inProcessRequest(callback, {
          ...request,
          originalUrl: this.path + request.url,
          headers: { ...request.headers, ...reached },
        }),
    };
  }

  #extend(provider: OidcProvider, store: OAuthStore, parts: { errors: OidcErrors; proofs: OidcProofs }): void {
    // Koa prints errors that have no listener.
    provider.on("error", () => {});
    provider.on("access_token.issued", ({ jti, grantId }: OidcAccessToken) => this.#grants.set(jti, grantId));
    const { oauth, machines, resources, vouchesAt } = this.#settings;
    if (vouchesAt && machines) {
      addIdJag(provider, { ...parts, machines, servers: vouchesAt });
      return;
    }
    provider.on("grant.success", (ctx: OidcContext) => this.#recordLogin(ctx));
    addTokenExchange(provider, {
      ...parts,
      oauth,
      inspect: (token) => this.inspect(token),
      hasGrant: (id) => store.hasGrant(id),
    });
    if (machines) addJwtBearer(provider, { ...parts, oauth, machines, issuer: this.issuer, resources });
  }

  #recordLogin({ req, oidc }: OidcContext): void {
    const accountId = oidc.entities.Account?.accountId;
    if (accountId === undefined) return;
    const agent = req.headers["user-agent"] ?? "unknown";
    if (oidc.params["grant_type"] === "refresh_token")
      this.#loginDevices.recordUse(oidc.client.clientId, accountId, agent);
    else this.#loginDevices.recordLogin(oidc.client, accountId, agent);
  }
}

function opaqueFacts(token: ClientToken & Partial<OidcAccessToken>, skew: number): AccessTokenFacts {
  const { clientId, accountId = clientId, scope, aud = "", exp, grantId, jti, jkt } = token;
  const expiresAt = exp + skew;
  return {
    subject: accountId,
    clientId,
    scopes: splitScope(scope),
    audience: aud,
    issuedAt: expiresAt - token.expiration,
    expiresAt,
    id: jti,
    ...(grantId !== undefined && { grantId }),
    ...(jkt !== undefined && { boundTo: jkt }),
  };
}

/** What the authorization servers need. */
type PoolServersSettings = Omit<PoolServerSettings, "poolId" | "resources" | "vouchesAt">;

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
