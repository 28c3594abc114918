import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type {
  AccessToken,
  ClientCredentials,
  ClientMetadata,
  KoaContextWithOIDC,
  OidcProvider,
  TokenEndpointGrantContext,
} from "#packages/oidc-provider";
import { parseUrl } from "../../http/address.js";
import { Lru } from "../../http/lru.js";
import { splitScope } from "../../oauth/model/scope.js";
import type { SandboxData } from "../data/data.js";
import type { SandboxResponse } from "../http/requests.js";
import {
  buildConfiguration,
  type ConfigurationSettings,
  DEVICE_CODE,
  describeResource,
  JWT_BEARER,
  LoginDevices,
  machineClients,
  TOKEN_EXCHANGE_GRANT,
} from "./configuration.js";
import type { OAuthSettings } from "./issuer-settings.js";
import type { IssuedToken, SigningKey } from "./keys.js";
import { createSigningKey, isMachine, openJwt, readAccessToken, SIGNING_ALG, signJwt } from "./keys.js";
import { IDP_PATH, type Machines } from "./machine.js";
import { OAuthStore } from "./oauth-store.js";
import type { OidcErrors, OidcProofs } from "./oidc.js";
import { loadOidc, readParam } from "./oidc.js";

/** A request that is answered inside the process. */
export interface ForwardedRequest {
  method: string;
  /** Path and query below where the handler is mounted. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

function createRequest({ method, url, headers, body }: ForwardedRequest, originalUrl: string): IncomingMessage {
  const { IncomingMessage } = process.getBuiltinModule("node:http");
  const length = body.length > 0 ? { "content-length": String(body.length) } : {};
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method, url, originalUrl, headers: { ...headers, ...length }, httpVersion: "1.1" });
  if (body.length > 0) request.push(body);
  request.push(null);
  return request;
}

/** A response that is buffered instead of sent. */
function createResponse(request: IncomingMessage, done: (answer: SandboxResponse) => void): ServerResponse {
  const { ServerResponse } = process.getBuiltinModule("node:http");
  const response = new ServerResponse(request);
  const chunks: Buffer[] = [];
  const write = (chunk: unknown) => {
    chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : Buffer.from(chunk as Uint8Array));
    return true;
  };
  const end = (chunk?: unknown) => {
    if (typeof chunk === "string" || chunk instanceof Uint8Array) write(chunk);
    // Koa checks this flag before it responds.
    response.finished = true;
    response.emit("finish");
    const headers = Object.entries(response.getHeaders()).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value : String(value),
    ]);
    const { "content-length": _, ...rest } = Object.fromEntries(headers) as Record<string, string | string[]>;
    done({ status: response.statusCode, headers: rest, body: Buffer.concat(chunks) });
    return response;
  };
  return Object.assign(response, { write, end });
}

/** Calls a Node.js handler without a connection. @param originalUrl path and query as the client sent them */
export function inProcessRequest(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  forwarded: ForwardedRequest,
  originalUrl: string,
): Promise<SandboxResponse> {
  return new Promise((resolve, reject) => {
    const request = createRequest(forwarded, originalUrl);
    const answered = handler(request, createResponse(request, resolve));
    Promise.resolve(answered).catch(reject);
  });
}

/** What the grants beside those of oidc-provider use of their authorization server. */
interface GrantServer extends Pick<PoolServer, "inspect" | "issuer"> {
  provider: OidcProvider;
  errors: OidcErrors;
  proofs: OidcProofs;
  store: OAuthStore;
  oauth: OAuthSettings;
  /** The resources of its tokens; the first is the default. */
  resources: readonly [string, ...string[]];
}

/** Answers with an access token for a resource, which is bound to the key of the request's proof. */
async function issueToken(
  { provider, proofs, oauth }: GrantServer,
  ctx: TokenEndpointGrantContext,
  token: AccessToken | ClientCredentials,
  target: { proof: object | undefined; resource: string; scope: string },
): Promise<void> {
  const { proof, resource, scope } = target;
  token.resourceServer = new provider.ResourceServer(resource, describeResource(oauth, resource, scope));
  token.scope = scope;
  await proofs.bind(provider, ctx, proof, token);
  ctx.oidc.entity(token.kind, token);
  ctx.body = {
    access_token: await token.save(),
    ...(ctx.oidc.params["grant_type"] === TOKEN_EXCHANGE_GRANT && { issued_token_type: ACCESS_TOKEN_TYPE }),
    token_type: token.tokenType,
    expires_in: token.expiration,
    ...(scope !== "" && { scope }),
  };
}

const ID_JAG_TYP = "oauth-id-jag+jwt";

/** Adds the JWT bearer grant (RFC 7523) for assertions of the trusted platform and of the identity provider. */
function addJwtBearer(server: GrantServer, machines: Machines): void {
  const { provider, proofs } = server;
  const respond = async (ctx: TokenEndpointGrantContext) => {
    const { client } = ctx.oidc;
    // First: a client without a nonce repeats the request with the same assertion, which may be valid only once.
    const proof = await proofs.read(provider, ctx);
    const { accountId, resource, scope } = readAssertion(ctx, server, machines);
    const grant = new provider.Grant({ accountId, clientId: client.clientId });
    if (scope !== "") grant.addResourceScope(resource, scope);
    const token = new provider.AccessToken({ accountId, client, grantId: await grant.save(), gty: "jwt_bearer" });
    await issueToken(server, ctx, token, { proof, resource, scope });
  };
  provider.registerGrantType(JWT_BEARER, respond, ["assertion", "scope", "resource"]);
}

/**
 * Validates the assertion by the rules of RFC 7523 section 3, and an ID-JAG by those of its draft (section 4.4.1). Each is
 * taken once, and not used up by a request that is refused for another reason. Returns whom and what a token is for.
 */
function readAssertion(ctx: TokenEndpointGrantContext, { errors, issuer, resources }: GrantServer, machines: Machines) {
  const assertion = readParam(ctx.oidc.params, "assertion");
  if (assertion === undefined) throw new errors.InvalidRequest("assertion is required");
  const refuse = (why: string) => new errors.InvalidGrant(why);
  const ofPlatform = openJwt(assertion, machines.key("platform"));
  const { header, claims } = ofPlatform ?? openJwt(assertion, machines.key("idp")) ?? {};
  if (!claims) throw refuse("the assertion is not signed by a trusted issuer");
  const { iss, sub, exp, nbf, jti } = claims;
  // One audience: another server in it could use the assertion too.
  const [aud, ...others] = [claims["aud"]].flat();
  if (iss !== (ofPlatform ? machines.platform : machines.idp.issuer))
    throw refuse("iss is not the issuer of the signing key");
  if (typeof exp !== "number" || exp <= machines.now()) throw refuse("the assertion is expired");
  if (typeof nbf === "number" && nbf > machines.now()) throw refuse("the assertion is not valid yet (nbf)");
  if (aud !== issuer || others.length > 0) throw refuse("aud is not this issuer alone");
  if (typeof sub !== "string" || typeof jti !== "string") throw refuse("sub or jti is missing");
  // An id token is not an assertion, although the same key signs it.
  if (!ofPlatform && header?.["typ"] !== ID_JAG_TYP) throw refuse("typ is not oauth-id-jag+jwt");
  if (!ofPlatform && claims["client_id"] !== ctx.oidc.client.clientId) throw refuse("client_id is another client");
  if (!ofPlatform && typeof claims["iat"] !== "number") throw refuse("iat is missing");
  // The identity provider may leave it out.
  const named = ofPlatform ? undefined : claims["resource"];
  const resource = readParam(ctx.oidc.params, "resource") ?? (typeof named === "string" ? named : resources[0]);
  if (!resources.includes(resource)) throw new errors.InvalidTarget("the resource is not one of this server");
  if (named !== undefined && named !== resource) throw refuse("resource is another resource");
  const scope = readScope(ctx, ofPlatform ? undefined : claims["scope"], errors);
  if (!machines.useOnce(`${iss} ${jti}`, exp)) throw refuse("the assertion was used already (jti)");
  return { accountId: sub, resource, scope };
}

/** The requested scopes, which an ID-JAG must allow; without a request, those that it allows. */
function readScope(ctx: TokenEndpointGrantContext, allowed: unknown, errors: OidcErrors): string {
  const requested = readParam(ctx.oidc.params, "scope") ?? "";
  if (typeof allowed !== "string") return requested;
  const extra = splitScope(requested).filter((scope) => !splitScope(allowed).includes(scope));
  if (extra.length > 0) throw new errors.InvalidScope("the ID-JAG does not allow this scope", extra.join(" "));
  return requested === "" ? allowed : requested;
}

const TYPE = "urn:ietf:params:oauth:token-type:";
const ACCESS_TOKEN_TYPE = `${TYPE}access_token`;
const ID_JAG = `${TYPE}id-jag`;
/** The parameters of a token exchange. */
const EXCHANGE_PARAMETERS = [
  ...["subject_token", "subject_token_type", "requested_token_type"],
  ...["audience", "resource", "scope"],
];
const LIFE_S = 300;

function idpClients({ idp }: Machines, { deviceFlow }: Pick<OAuthSettings, "deviceFlow">): ClientMetadata[] {
  const common: Omit<ClientMetadata, "client_id"> = {
    application_type: "native",
    redirect_uris: ["http://127.0.0.1/callback", "http://localhost/callback"],
    response_types: ["code"],
    grant_types: ["authorization_code", "refresh_token", TOKEN_EXCHANGE_GRANT, ...(deviceFlow ? [DEVICE_CODE] : [])],
    id_token_signed_response_alg: SIGNING_ALG,
  };
  return [
    { ...common, client_id: idp.nativeClient.clientId, token_endpoint_auth_method: "none" },
    {
      ...common,
      client_id: idp.clientId,
      client_secret: idp.clientSecret,
      token_endpoint_auth_method: "client_secret_basic",
    },
  ];
}

/**
 * Adds the exchange of an id token, or of a refresh token, for an identity assertion (ID-JAG) for an authorization server
 * of the sandbox (RFC 8693, identity assertion authorization grant).
 */
function addIdJag(server: GrantServer, machines: Machines, servers: PoolServers): void {
  const { provider, errors } = server;
  const respond = async (ctx: TokenEndpointGrantContext) => {
    const { params, client } = ctx.oidc;
    const sub = await assertedSubject(ctx, server, machines);
    const aud = readParam(params, "audience") ?? "";
    if (!servers.isIssuer(aud)) throw new errors.InvalidTarget("the audience is not an issuer of this sandbox");
    if (machines.isDenied(aud)) throw new errors.AccessDenied("the policy of the company does not allow this server");
    const resource = readParam(params, "resource");
    const scope = machines.allowedScopes(aud, readParam(params, "scope"));
    const assertion = {
      iss: machines.idp.issuer,
      sub,
      aud,
      client_id: machines.clientAtServers(client.clientId),
      ...(resource !== undefined && { resource }),
      ...(scope !== undefined && { scope }),
      ...machines.times(LIFE_S),
    };
    ctx.body = {
      access_token: signJwt(machines.key("idp"), ID_JAG_TYP, assertion),
      issued_token_type: ID_JAG,
      token_type: "N_A",
      expires_in: LIFE_S,
      ...(scope !== undefined && { scope }),
    };
  };
  provider.registerGrantType(TOKEN_EXCHANGE_GRANT, respond, EXCHANGE_PARAMETERS);
}

async function assertedSubject(
  ctx: TokenEndpointGrantContext,
  { provider, errors }: GrantServer,
  machines: Machines,
): Promise<string> {
  const { params, client } = ctx.oidc;
  const [token = "", type] = [readParam(params, "subject_token"), readParam(params, "subject_token_type")];
  if (readParam(params, "requested_token_type") !== ID_JAG) throw new errors.InvalidRequest("only an ID-JAG is issued");
  if (type === `${TYPE}refresh_token`) {
    const found = await provider.RefreshToken.find(token);
    if (found?.isValid && found.clientId === client.clientId) return found.accountId;
    throw new errors.InvalidGrant("the refresh token is used, expired, or not of this client");
  }
  if (type !== `${TYPE}id_token`) throw new errors.InvalidRequest("only an id token or a refresh token is exchanged");
  const { header, claims } = openJwt(token, machines.key("idp")) ?? {};
  const isIdToken = header?.["typ"] !== ID_JAG_TYP && claims?.["aud"] === client.clientId;
  if (!isIdToken || Number(claims["exp"]) <= machines.now())
    throw new errors.InvalidGrant("the id token is expired, or not for this client");
  return String(claims["sub"]);
}

/** What the authorization server of a pool needs. */
export interface PoolServerSettings extends Pick<ConfigurationSettings, "oauth" | "clock" | "machines" | "resources"> {
  origin: string;
  poolId: string;
  data: SandboxData;
  /** Set for the identity provider, which vouches for users at these servers. */
  vouchesAt?: PoolServers;
}

/** The started authorization server. */
export interface RunningServer {
  provider: OidcProvider;
  store: OAuthStore;
  /** Answers a request, whose `url` is the path below the pool's. */
  answer(request: ForwardedRequest): Promise<SandboxResponse>;
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

  /** An access token of this server; `undefined` for any other token and an expired one. */
  async inspect(token: string): Promise<IssuedToken | undefined> {
    const { clock } = this.#settings;
    const claims = readAccessToken(token, this.issuer, this.#key, clock.now() / 1000);
    if (claims) return { claims, grantId: this.#grants.get(claims.jti) };
    const { provider } = await this.run();
    const found = (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
    return found?.isValid ? readOpaqueToken(found, this.issuer, clock.skew) : undefined;
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
      buildConfiguration({
        ...this.#settings,
        store,
        errors,
        path: this.path,
        key: this.#key,
        loginDevices: this.#loginDevices,
        clients: machines ? (vouchesAt ? idpClients : machineClients)(machines, oauth) : [],
      }),
    );
    this.#extend({
      ...this.#settings,
      ...{ provider, errors, proofs, store, issuer: this.issuer },
      inspect: (token) => this.inspect(token),
    });
    const callback = provider.callback();
    // The headers below say where clients reach the server, whatever they sent: oidc-provider builds its URLs from these.
    provider.proxy = true;
    const { host, protocol } = new URL(this.issuer);
    const reached = { host, "x-forwarded-host": host, "x-forwarded-proto": protocol.slice(0, -1) };
    return {
      provider,
      store,
      answer: (request) =>
        inProcessRequest(
          callback,
          { ...request, headers: { ...request.headers, ...reached } },
          this.path + request.url,
        ),
    };
  }

  #extend(server: GrantServer): void {
    const { provider } = server;
    const { machines, vouchesAt } = this.#settings;
    // Koa prints errors that have no listener.
    (provider as NodeJS.EventEmitter).on("error", () => {});
    provider.on("access_token.issued", ({ jti, grantId }) => this.#grants.set(jti, grantId));
    if (vouchesAt && machines) {
      addIdJag(server, machines, vouchesAt);
      return;
    }
    provider.on("grant.success", (ctx) => this.#recordLogin(ctx));
    addTokenExchange(server);
    if (machines) addJwtBearer(server, machines);
  }

  #recordLogin({ req, oidc }: KoaContextWithOIDC): void {
    const { client, params, entities } = oidc;
    const accountId = entities.Account?.accountId;
    if (accountId === undefined || client === undefined) return;
    const agent = req.headers["user-agent"] ?? "unknown";
    if (params?.["grant_type"] === "refresh_token") this.#loginDevices.recordUse(client.clientId, accountId, agent);
    else this.#loginDevices.recordLogin(client, accountId, agent);
  }
}

function readOpaqueToken(token: AccessToken | ClientCredentials, issuer: string, skew: number): IssuedToken {
  const { clientId = "", scope, aud = "", jti, jkt } = token;
  const { accountId: sub, grantId } =
    token.kind === "AccessToken" ? token : { accountId: clientId, grantId: undefined };
  const exp = Number(token.exp) + skew;
  const claims = { iss: issuer, sub, client_id: clientId, aud: String(aud), exp, iat: exp - token.expiration, jti };
  return { claims: { ...claims, ...(scope && { scope }), ...(jkt !== undefined && { cnf: { jkt } }) }, grantId };
}

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

/**
 * Adds the token exchange grant (RFC 8693): an access token of this server for another one, with the same subject, for
 * another audience, and with at most the same scopes. A client's own token is exchanged for that client alone.
 */
function addTokenExchange(server: GrantServer): void {
  const { provider, proofs } = server;
  const respond = async (ctx: TokenEndpointGrantContext) => {
    const { params, client } = ctx.oidc;
    const proof = await proofs.read(provider, ctx);
    const { claims, grantId } = await readSubject(ctx, server);
    const resource = readAudience(ctx, server);
    const scope = narrowScope(splitScope(claims.scope), readParam(params, "scope"), server.errors);
    const token =
      grantId === undefined
        ? new provider.ClientCredentials({ client })
        : new provider.AccessToken({ accountId: claims.sub, client, grantId, gty: "token_exchange" });
    await issueToken(server, ctx, token, { proof, resource, scope });
  };
  provider.registerGrantType(TOKEN_EXCHANGE_GRANT, respond, EXCHANGE_PARAMETERS);
}

async function readSubject(
  ctx: TokenEndpointGrantContext,
  { errors, store, inspect }: GrantServer,
): Promise<IssuedToken> {
  const { params, client } = ctx.oidc;
  const token = readParam(params, "subject_token");
  if (token === undefined) throw new errors.InvalidRequest("subject_token is required");
  if (![ACCESS_TOKEN_TYPE, `${TYPE}jwt`].includes(readParam(params, "subject_token_type") ?? ""))
    throw new errors.InvalidRequest(`subject_token_type must be ${ACCESS_TOKEN_TYPE}`);
  if ((readParam(params, "requested_token_type") ?? ACCESS_TOKEN_TYPE) !== ACCESS_TOKEN_TYPE)
    throw new errors.InvalidRequest(`requested_token_type must be ${ACCESS_TOKEN_TYPE}`);
  const subject = await inspect(token);
  const isOwn = subject && isMachine(subject) && subject.claims.client_id === client.clientId;
  if (isOwn || store.hasGrant(subject?.grantId)) return subject as IssuedToken;
  throw new errors.InvalidRequest("subject_token is not a valid access token of this server");
}

function readAudience(ctx: TokenEndpointGrantContext, { errors, oauth }: GrantServer): string {
  const [audience, resource] = [readParam(ctx.oidc.params, "audience"), readParam(ctx.oidc.params, "resource")];
  if (audience !== undefined && resource !== undefined && audience !== resource)
    throw new errors.InvalidTarget("audience and resource must name the same target");
  if (resource !== undefined && (parseUrl(resource) === undefined || resource.includes("#")))
    throw new errors.InvalidTarget("resource must be an absolute URI without a fragment");
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
