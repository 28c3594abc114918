import { splitScope } from "../../oauth/model/scope.js";
import type { SandboxData } from "../data/data.js";
import type { SandboxResponse } from "../http/sandbox-response.js";
import { type ConfigurationSettings, configurationOf, describeResource } from "./configuration.js";
import { addIdJag, type IssuerList, idpClients } from "./identity-provider.js";
import { type ForwardedRequest, inProcessRequest } from "./in-process-request.js";
import { addJwtBearer } from "./jwt-bearer.js";
import { createSigningKey, type SigningKey } from "./keys.js";
import { LoginDevices } from "./login-devices.js";
import { machineClients } from "./machine-clients.js";
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
import { type AccessTokenFacts, readAccessToken } from "./token-facts.js";

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
  readonly #grants = new Map<string, string>();
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
    const { host } = new URL(this.issuer);
    return {
      provider,
      store,
      answer: (request) =>
        inProcessRequest(callback, {
          ...request,
          originalUrl: this.path + request.url,
          // The host of the issuer, whatever Host the client sent: oidc-provider builds its URLs from this.
          headers: { ...request.headers, host },
        }),
    };
  }

  #extend(provider: OidcProvider, store: OAuthStore, parts: { errors: OidcErrors; proofs: OidcProofs }): void {
    // Koa prints errors that have no listener.
    provider.on("error", () => {});
    provider.on("access_token.issued", ({ jti, grantId }: OidcAccessToken) => {
      this.#grants.set(jti, grantId);
      if (this.#grants.size > MAX_TOKENS)
        for (const oldest of this.#grants.keys()) return void this.#grants.delete(oldest);
    });
    const { oauth, machines, resources, vouchesAt } = this.#settings;
    if (vouchesAt && machines) {
      addIdJag(provider, { ...parts, machines, servers: vouchesAt });
      return;
    }
    provider.on("grant.success", (ctx: OidcContext) => this.#recordLogin(ctx));
    const describe = (audience: string, scope: string) => describeResource(oauth, audience, scope);
    addTokenExchange(provider, {
      ...parts,
      inspect: (token) => this.inspect(token),
      hasGrant: (id) => store.hasGrant(id),
      audiences: oauth.exchangeAudiences,
      describeResource: describe,
    });
    if (machines)
      addJwtBearer(provider, { ...parts, machines, issuer: this.issuer, resources, describeResource: describe });
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
