import { parseUrl } from "../../http/address.js";
import { Lru } from "../../http/lru.js";
import { splitScope } from "../../oauth/model/scope.js";
import type { SandboxData } from "../data/data.js";
import type { SandboxResponse } from "../http/sandbox-response.js";
import { addIdJag, addJwtBearer, type IssuerList, idpClients } from "./assertions.js";
import {
  type ConfigurationSettings,
  configurationOf,
  describeResource,
  machineClients,
  TOKEN_EXCHANGE_GRANT,
} from "./configuration.js";
import { type ForwardedRequest, inProcessRequest } from "./in-process-request.js";
import type { OAuthSettings } from "./issuer-settings.js";
import { type AccessTokenFacts, createSigningKey, isMachine, readAccessToken, type SigningKey } from "./keys.js";
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
  paramOf,
} from "./oidc.js";

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

const ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token";
const SUBJECT_TYPES: readonly unknown[] = [ACCESS_TOKEN_TYPE, "urn:ietf:params:oauth:token-type:jwt"];
const PARAMETERS = ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"];

/** What the exchange needs of the authorization server. */
interface ExchangeSettings {
  errors: OidcErrors;
  proofs: OidcProofs;
  oauth: OAuthSettings;
  /** The facts of an access token that this server issued, if it is valid. */
  inspect(token: string): Promise<AccessTokenFacts | undefined>;
  hasGrant(id: string): boolean;
}

/**
 * Adds the token exchange grant (RFC 8693): an access token of this server for another one, with the same subject, for
 * another audience, and with at most the same scopes. A client's own token is exchanged for that client alone.
 */
function addTokenExchange(provider: OidcProvider, settings: ExchangeSettings): void {
  const { errors, proofs } = settings;
  provider.registerGrantType(
    TOKEN_EXCHANGE_GRANT,
    async (ctx) => {
      const proof = await proofs.read(provider, ctx);
      const subject = await readSubject(ctx, settings);
      const audience = readAudience(ctx, settings);
      const scope = narrowScope(subject.scopes, paramOf(ctx.oidc.params, "scope"), errors);
      const { client } = ctx.oidc;
      const { grantId, subject: accountId } = subject;
      const token =
        grantId === undefined
          ? new provider.ClientCredentials({ client })
          : new provider.AccessToken({ accountId, client, grantId, gty: "token_exchange" });
      token.resourceServer = new provider.ResourceServer(audience, describeResource(settings.oauth, audience, scope));
      token.scope = scope;
      await proofs.bind(provider, ctx, proof, token);
      ctx.oidc.entity(grantId === undefined ? "ClientCredentials" : "AccessToken", token);
      ctx.body = {
        access_token: await token.save(),
        issued_token_type: ACCESS_TOKEN_TYPE,
        token_type: token.tokenType,
        expires_in: token.expiration,
        ...(scope !== "" && { scope }),
      };
    },
    PARAMETERS,
  );
}

async function readSubject(ctx: OidcContext, { errors, inspect, hasGrant }: ExchangeSettings) {
  const token = paramOf(ctx.oidc.params, "subject_token");
  if (token === undefined) throw new errors.InvalidRequest("subject_token is required");
  if (!SUBJECT_TYPES.includes(paramOf(ctx.oidc.params, "subject_token_type"))) {
    throw new errors.InvalidRequest(`subject_token_type must be ${ACCESS_TOKEN_TYPE}`);
  }
  const requested = paramOf(ctx.oidc.params, "requested_token_type");
  if (requested !== undefined && requested !== ACCESS_TOKEN_TYPE) {
    throw new errors.InvalidRequest(`requested_token_type must be ${ACCESS_TOKEN_TYPE}`);
  }
  const subject = await inspect(token);
  const isOwn = subject && isMachine(subject) && subject.clientId === ctx.oidc.client.clientId;
  if (!isOwn && (subject?.grantId === undefined || !hasGrant(subject.grantId))) {
    throw new errors.InvalidRequest("subject_token is not a valid access token of this server");
  }
  return subject;
}

function readAudience(ctx: OidcContext, { errors, oauth }: ExchangeSettings): string {
  const [audience, resource] = [paramOf(ctx.oidc.params, "audience"), paramOf(ctx.oidc.params, "resource")];
  if (audience !== undefined && resource !== undefined && audience !== resource) {
    throw new errors.InvalidTarget("audience and resource must name the same target");
  }
  if (resource !== undefined && (parseUrl(resource) === undefined || resource.includes("#"))) {
    throw new errors.InvalidTarget("resource must be an absolute URI without a fragment");
  }
  const target = resource ?? audience;
  if (target === undefined) throw new errors.InvalidTarget("audience or resource is required");
  if (oauth.exchangeAudiences?.includes(target) === false)
    throw new errors.InvalidTarget("the target is not an allowed audience");
  return target;
}

function narrowScope(granted: readonly string[], requested: string | undefined, errors: OidcErrors): string {
  if (requested === undefined) return granted.join(" ");
  const extra = requested.split(" ").filter((scope) => !granted.includes(scope));
  if (extra.length > 0) throw new errors.InvalidScope("the subject token does not have this scope", extra.join(" "));
  return requested;
}
