import { randomBytes } from "node:crypto";
import type {
  Client,
  ClientAuthMethod,
  ClientMetadata,
  Configuration,
  KoaContextWithOIDC,
  ResourceServer,
} from "#packages/oidc-provider";
import { isLoopbackHost } from "../../http/address.js";
import { Lru } from "../../http/lru.js";
import { splitScope } from "../../oauth/model/scope.js";
import type { SandboxData } from "../data/data.js";
import { CLIENTS, type SandboxInteraction } from "../data/sample-device.js";
import type { MovableClock } from "../http/clock.js";
import { DEVICE_PAGES, errorPage, logoutPage, messagePage, showPage } from "./issuer-pages.js";
import { findUser, type OAuthSettings } from "./issuer-settings.js";
import { SIGNING_ALG, type SigningKey } from "./keys.js";
import type { Machines } from "./machine.js";
import type { OAuthStore } from "./oauth-store.js";
import type { OidcErrors } from "./oidc.js";

// Users of a sandbox connect from loopback, for which there is no location.
const LOCATION = {
  asn: 3320,
  city: "Berlin",
  country_code: "DE",
  lat_long: [52.52, 13.405] as [number, number],
  region_code: "BE",
  remote_ip: "192.0.2.10",
  timezone: "Europe/Berlin",
};
const FINGERPRINT = CLIENTS.mcp[0]?.ja4 ?? "";
const MAX_KNOWN = 10_000;

/** The devices that logins at the authorization server of a pool create: one for each client and account. */
export class LoginDevices {
  readonly #data: SandboxData;
  readonly #clock: MovableClock;
  readonly #poolId: string;
  readonly #devices = new Lru<string>(MAX_KNOWN);

  constructor(data: SandboxData, clock: MovableClock, poolId: string) {
    this.#data = data;
    this.#clock = clock;
    this.#poolId = poolId;
  }

  /** Records a login: inserts a device, or updates `last_seen` of the one that there is. */
  recordLogin(client: Client, accountId: string, userAgent: string): void {
    if (this.isActive(client.clientId, accountId) && this.recordUse(client.clientId, accountId, userAgent)) return;
    const title = client.clientName ?? client.clientId;
    const details = this.#interaction(userAgent);
    const device = this.#data.insertDevice(this.#poolId, {
      dynamic_client_details: {
        auth_profile: "mcp",
        client_secret: "<CLIENT_SECRET>",
        pkce_required: true,
        redirect_uris: [...(client.redirectUris ?? [])],
        title,
      },
      first_seen: details,
      last_seen: details,
      session_type: "mcp",
      status: "active",
      title,
    });
    this.#devices.set(deviceKey(client.clientId, accountId), device.id);
  }

  /** Updates `last_seen` of a device; returns whether there is one. */
  recordUse(clientId: string, accountId: string, userAgent: string): boolean {
    const id = this.#devices.get(deviceKey(clientId, accountId));
    if (id === undefined) return false;
    return this.#data.updateDevice(this.#poolId, id, { last_seen: this.#interaction(userAgent) }) !== undefined;
  }

  /** Whether a device is neither revoked nor deleted; one that was dropped from memory counts as active. */
  isActive(clientId: string, accountId: string): boolean {
    const id = this.#devices.get(deviceKey(clientId, accountId));
    return id === undefined || this.#data.findDevice(this.#poolId, id)?.status === "active";
  }

  #interaction(userAgent: string): SandboxInteraction {
    const at = Math.floor(this.#clock.now() / 10) / 100;
    return { ...LOCATION, at, ja4_fingerprint: FINGERPRINT, user_agent: userAgent };
  }
}

function deviceKey(clientId: string, accountId: string): string {
  return `${clientId} ${accountId}`;
}

/** The JWT bearer grant (RFC 7523, section 2.1). */
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** The token exchange grant (RFC 8693, section 2.1). */
export const TOKEN_EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
/** The device authorization grant (RFC 8628, section 3.4). */
export const DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code";

/** The scope of a request that names none (RFC 6749, section 3.3). */
const DEFAULT_SCOPE = "mcp";

/** Scopes for the authorization server itself: they are never in an access token for a resource. */
export const STATIC_SCOPES = ["openid", "offline_access"] as const;

const DAY = 86_400;

export interface ConfigurationSettings {
  oauth: OAuthSettings;
  clock: MovableClock;
  key: SigningKey;
  store: OAuthStore;
  loginDevices: LoginDevices;
  /** The machine clients; `undefined` without the option `machineGrants`. */
  machines: Machines | undefined;
  /** The pre-registered clients. */
  clients: readonly ClientMetadata[];
  errors: OidcErrors;
  /** The path that the server is mounted at. */
  path: string;
  /** The addresses of the MCP servers that the tokens are for; the first is the default. */
  resources: readonly [string, ...string[]];
}

/** The configuration of oidc-provider. It sets everything that oidc-provider would print a warning about. */
export function buildConfiguration(settings: ConfigurationSettings): Configuration {
  const { oauth, key, store, path, machines } = settings;
  return {
    adapter: (kind: string) => store.adapter(kind),
    jwks: { keys: [key.jwk] },
    cookies: {
      keys: [randomBytes(32).toString("base64url")],
      // The servers of all pools share a host: only the path keeps their cookies apart.
      long: { httpOnly: true, sameSite: "lax", path },
    },
    scopes: STATIC_SCOPES,
    responseTypes: ["code"],
    clientAuthMethods: MACHINE_AUTH_METHODS.filter((method) => machines || method !== "private_key_jwt"),
    clients: settings.clients,
    clientDefaults: {
      id_token_signed_response_alg: SIGNING_ALG,
      // As at many servers: clients that name no method send `client_id` in the form, beside HTTP Basic too.
      token_endpoint_auth_method: "client_secret_post",
    },
    // Clients register the scopes of the resource, or "" for none: oidc-provider would check them against its own.
    extraClientMetadata: {
      properties: ["scope"],
      validator: (_ctx, name, _value, metadata) => void delete metadata[name],
    },
    // A clock that was moved must be exact.
    clockTolerance: 0,
    fetch: fetchForClient,
    routes: ROUTES,
    ttl: buildLifetimes(oauth),
    features: buildFeatures(settings),
    ...buildPolicies(settings),
  };
}

/** The paths that differ from those of oidc-provider. */
const ROUTES = {
  authorization: "/authorize",
  registration: "/register",
  introspection: "/introspect",
  revocation: "/revoke",
  end_session: "/end_session",
  device_authorization: "/device_authorization",
} as const;

function buildPolicies({ oauth, clock, loginDevices, path }: ConfigurationSettings): Configuration {
  return {
    clientBasedCORS: () => false,
    pkce: { required: () => true },
    formats: {
      customizers: {
        jwt(_ctx, _token, { payload }) {
          payload["iat"] = Number(payload["iat"]) + clock.skew;
          payload["exp"] = Number(payload["exp"]) + clock.skew;
        },
      },
    },
    interactions: { url: (_ctx, { uid }) => `${path}/interaction/${uid}` },
    findAccount: (_ctx, id, token) => {
      const revoked = token?.kind === "RefreshToken" && !loginDevices.isActive(token.clientId ?? "", id);
      return revoked ? undefined : buildAccount(id);
    },
    expiresWithSession: () => false,
    issueRefreshToken: (_ctx, client, source) =>
      client.grantTypeAllowed("refresh_token") && (!oauth.requireOfflineAccess || source.scopes.has("offline_access")),
    rotateRefreshToken: true,
    renderError: (ctx, out) => showPage(ctx, errorPage(out)),
  };
}

function buildLifetimes({ accessTokenTtlSeconds }: OAuthSettings) {
  return {
    AccessToken: accessTokenTtlSeconds,
    AuthorizationCode: 60,
    ClientCredentials: accessTokenTtlSeconds,
    DeviceCode: 600,
    BackchannelAuthenticationRequest: 600,
    PreAuthorizedCode: 600,
    Grant: 3650 * DAY,
    IdToken: 3600,
    Interaction: 3600,
    RefreshToken: 30 * DAY,
    Session: 14 * DAY,
  };
}

function buildFeatures(settings: ConfigurationSettings): Configuration["features"] {
  const { oauth } = settings;
  const ofAuthenticated = (_ctx: KoaContextWithOIDC, client: Client, token: { clientId?: string | undefined }) =>
    client.clientAuthMethod !== "none" || token.clientId === client.clientId;
  return {
    devInteractions: { enabled: false },
    dPoP: {
      enabled: oauth.dpop !== "off",
      requireNonce: () => oauth.dpopNonces,
      ...(oauth.dpopNonces && { nonceSecret: randomBytes(32) }),
    },
    pushedAuthorizationRequests: { enabled: false },
    userinfo: { enabled: false },
    registration: { enabled: true, issueRegistrationAccessToken: false },
    // Confirmed by its revision: oidc-provider may change what is still a draft.
    clientIdMetadataDocument: { enabled: oauth.clientMetadataDocuments, ack: "draft-02" },
    clientCredentials: { enabled: settings.machines !== undefined },
    introspection: { enabled: true, allowedPolicy: ofAuthenticated },
    revocation: {
      enabled: oauth.revocation,
      allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_ctx, _client, oneOf) => oneOf ?? settings.resources[0],
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => resourceInfo(settings, ctx, resource),
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx, form) => showPage(ctx, logoutPage(form)),
      postLogoutSuccessSource: (ctx) =>
        showPage(ctx, messagePage("Logged out", "You have logged out of the sandbox. This page can be closed.")),
    },
    deviceFlow: { enabled: oauth.deviceFlow, ...DEVICE_PAGES },
  };
}

/** Every requested scope can be granted: the resource decides what a scope means. */
function resourceInfo(settings: ConfigurationSettings, ctx: KoaContextWithOIDC, resource: string): ResourceServer {
  const { errors, resources } = settings;
  if (!resources.includes(resource)) throw new errors.InvalidTarget("the resource is not one of this server");
  const { route, params = {}, entities } = ctx.oidc;
  if (route.endsWith("authorization") && !params["scope"]) params["scope"] = DEFAULT_SCOPE;
  const requested = typeof params["scope"] === "string" ? splitScope(params["scope"]) : [];
  const granted = splitScope(entities.Grant?.getResourceScope(resource));
  const scopes = new Set([DEFAULT_SCOPE, ...requested, ...granted]);
  for (const scope of ["", ...STATIC_SCOPES]) scopes.delete(scope);
  return describeResource(settings.oauth, resource, [...scopes].join(" "));
}

/** The format and lifetime of access tokens for a resource. */
export function describeResource(oauth: OAuthSettings, audience: string, scope: string): ResourceServer {
  return {
    scope,
    audience,
    accessTokenFormat: oauth.opaque ? "opaque" : "jwt",
    accessTokenTTL: oauth.accessTokenTtlSeconds,
    jwt: { sign: { alg: SIGNING_ALG } },
  };
}

/** A server on this machine may read the metadata document of a client there, which oidc-provider's dispatcher refuses. */
const fetchForClient: typeof fetch = (input, given = {}) => {
  const { dispatcher, ...init } = given as RequestInit & { dispatcher?: unknown };
  return fetch(input, isLoopbackHost(new URL(String(input)).hostname) ? init : given);
};

function buildAccount(id: string) {
  const user = findUser(id);
  return user && { accountId: id, claims: () => ({ sub: id, name: user.name, email: user.email }) };
}

/** The client authentication methods, with those of machine clients. */
export const MACHINE_AUTH_METHODS: readonly ClientAuthMethod[] = [
  "client_secret_basic",
  "client_secret_post",
  "none",
  "private_key_jwt",
];

/** The pre-registered clients of an authorization server, in the form of oidc-provider. */
export function machineClients(machines: Machines): ClientMetadata[] {
  const { secretClient, keyClient, workloadClient } = machines;
  const { kid, crv, kty, x, y } = machines.key("client").jwk;
  const common = { redirect_uris: [], response_types: [] };
  const all = ["client_credentials", JWT_BEARER, TOKEN_EXCHANGE_GRANT];
  return [
    {
      ...common,
      client_id: secretClient.clientId,
      client_secret: secretClient.clientSecret,
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: all,
    },
    {
      ...common,
      client_id: keyClient.clientId,
      jwks: { keys: [{ kid, crv, kty, x, y, use: "sig", alg: SIGNING_ALG }] },
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_signing_alg: SIGNING_ALG,
      grant_types: all,
    },
    {
      ...common,
      client_id: workloadClient.clientId,
      token_endpoint_auth_method: "none",
      grant_types: [JWT_BEARER, TOKEN_EXCHANGE_GRANT],
    },
  ];
}
