import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.js";
import type { SandboxData } from "../data/data.js";
import type { Answer } from "../http/round-trip.js";
import { configurationOf, describeResource } from "./configuration.js";
import { type InnerRequest, inProcessRequest } from "./in-process-request.js";
import type { OAuthSettings } from "./issuer-settings.js";
import { addJwtBearer } from "./jwt-bearer.js";
import { createSigningKey } from "./keys.js";
import { SignIns } from "./logins.js";
import type { Machines } from "./machine.js";
import {
  type AccessToken,
  type ClientToken,
  loadOidc,
  type OidcContext,
  type OidcErrors,
  type OidcProofs,
  type OidcProvider,
} from "./oidc.js";
import { OAuthStore } from "./store.js";
import { addTokenExchange } from "./token-exchange.js";
import { readJwt, type TokenFacts } from "./verify.js";

/** What the authorization server of a pool is made of. */
export interface PoolServerSettings {
  origin: string;
  poolId: string;
  /** The addresses of the MCP servers that it protects. */
  resources: readonly [string, ...string[]];
  oauth: OAuthSettings;
  clock: Clock;
  data: SandboxData;
  /** Who gets tokens without a person; `undefined` where nobody does. */
  machines: Machines | undefined;
}

/** The authorization server at work. */
export interface Running {
  provider: OidcProvider;
  store: OAuthStore;
  /** Lets it answer a request, whose `url` is the path below the pool's. */
  answer(request: Omit<InnerRequest, "originalUrl">): Promise<Answer>;
}

const MAX_TOKENS = 10_000;

/** The authorization server of one pool, on oidc-provider, which is loaded and started when it is first needed. */
export class PoolServer {
  /** Where it is mounted: the path of its issuer. */
  readonly path: string;
  /** Its issuer identifier. */
  readonly issuer: string;
  readonly #settings: PoolServerSettings;
  readonly #key = createSigningKey();
  readonly #signIns: SignIns;
  /** The grants of the JWTs that were issued, by the tokens' ids. */
  readonly #grants = new Map<string, string>();
  #running: Promise<Running> | undefined;

  constructor(settings: PoolServerSettings) {
    const { origin, poolId, data, clock } = settings;
    this.#settings = settings;
    this.path = `/${poolId}`;
    this.issuer = origin + this.path;
    this.#signIns = new SignIns(data, clock, poolId);
  }

  /** The server, started if it is not yet. */
  run(): Promise<Running> {
    this.#running ??= this.#start();
    return this.#running;
  }

  /** The facts of an access token of this server; `undefined` where it is none, or not current. */
  async inspect(token: string): Promise<TokenFacts | undefined> {
    const { clock } = this.#settings;
    const facts = readJwt(token, { issuer: this.issuer, key: this.#key, now: clock.now() / 1000 });
    if (facts) return { ...facts, ...this.#grantOf(facts.id) };
    const { provider } = await this.run();
    const found = await provider.AccessToken.find(token);
    if (found) return found.isValid ? opaqueFacts(found, clock.skew) : undefined;
    const own = await provider.ClientCredentials.find(token);
    return own?.isValid ? opaqueFacts({ ...fieldsOf(own), accountId: own.clientId }, clock.skew) : undefined;
  }

  #grantOf(tokenId = ""): { grantId?: string } {
    const grantId = this.#grants.get(tokenId);
    return grantId === undefined ? {} : { grantId };
  }

  async #start(): Promise<Running> {
    const { oauth, clock, resources, machines } = this.#settings;
    const { Provider, errors, proofs } = await loadOidc();
    const store = new OAuthStore({
      clock,
      reuseGrace: oauth.refreshReuseGrace,
      reused: () => new errors.InvalidGrant("used already"),
    });
    const provider = new Provider(
      this.issuer,
      configurationOf({
        oauth,
        clock,
        resources,
        store,
        errors,
        path: this.path,
        key: this.#key,
        machines,
        signIns: this.#signIns,
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
          // Its own address, however the sandbox was reached: the addresses in its answers are built from this.
          headers: { ...request.headers, host },
        }),
    };
  }

  #extend(provider: OidcProvider, store: OAuthStore, parts: { errors: OidcErrors; proofs: OidcProofs }): void {
    // Koa prints what nobody listens for.
    provider.on("error", () => {});
    provider.on("access_token.issued", ({ jti, grantId }: AccessToken) => {
      this.#grants.set(jti, grantId);
      if (this.#grants.size > MAX_TOKENS)
        for (const oldest of this.#grants.keys()) return void this.#grants.delete(oldest);
    });
    provider.on("grant.success", (ctx: OidcContext) => this.#noteSignIn(ctx));
    const { oauth, machines, resources } = this.#settings;
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

  #noteSignIn({ req, oidc }: OidcContext): void {
    const accountId = oidc.entities.Account?.accountId;
    if (accountId === undefined) return;
    const agent = userAgentOf(req);
    if (oidc.params["grant_type"] === "refresh_token") this.#signIns.seen(oidc.client.clientId, accountId, agent);
    else this.#signIns.signedIn(oidc.client, accountId, agent);
  }
}

function userAgentOf(request: IncomingMessage): string {
  return request.headers["user-agent"] ?? "unknown";
}

type Fields = Pick<AccessToken, "accountId" | "clientId" | "scope" | "aud" | "exp" | "jti" | "expiration" | "jkt"> &
  Partial<Pick<AccessToken, "grantId">>;

/** Some of them are getters. */
function fieldsOf({ clientId, scope, aud, exp, jti, expiration, jkt }: ClientToken): Omit<Fields, "accountId"> {
  const optional = Object.entries({ scope, aud, jkt }).filter(([, value]) => value !== undefined);
  return { clientId, exp, jti, expiration, ...Object.fromEntries(optional) };
}

function opaqueFacts(token: Fields, skew: number): TokenFacts {
  const { accountId, clientId, scope = "", aud = "", exp, grantId, jti, jkt } = token;
  const expiresAt = exp + skew;
  const issuedAt = expiresAt - token.expiration;
  const scopes = scope === "" ? [] : scope.split(" ");
  const grant = grantId === undefined ? {} : { grantId };
  const binding = jkt === undefined ? {} : { boundTo: jkt };
  return { subject: accountId, clientId, scopes, audience: aud, issuedAt, expiresAt, id: jti, ...grant, ...binding };
}
