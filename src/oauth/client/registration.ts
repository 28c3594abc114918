import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isLoopbackHost } from "../../http/address.js";
import { refused } from "../../http/refuse.js";
import { quote, Secret } from "../../redact.js";
import type { ServerMetadata } from "../discovery/types.js";
import type { AuthMethod, ClientRecord } from "../grant/grant.js";
import type { GrantStore } from "../grant/grant-store.js";
import { HEARTBEAT_MS } from "../grant/lease.js";
import type { OAuthHttp } from "../http/http.js";
import type { TraceEntry } from "../http/trace.js";
import { oauthError } from "../token/oauth-error.js";
import {
  type PreRegisteredClient,
  preferredMethod,
  preRegisteredClient,
  SUPPORTED_METHODS,
} from "./pre-registered-client.js";

/** What getting a client depends on. */
export interface Registration {
  http: OAuthHttp;
  server: ServerMetadata;
  store: GrantStore;
  profile: string;
  /** The redirect address of this login. */
  redirectUri: string;
  clientName: string;
  preRegistered: PreRegisteredClient | undefined;
  /** The address of our client id metadata document, if we publish one. */
  clientMetadataUrl: string | undefined;
  /** Scopes that the client may ask for. */
  scope: readonly string[];
  /** Grants beside the usual two. */
  moreGrants?: readonly string[];
  now: number;
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}

const DAY_MS = 24 * 3_600_000;
/** So many clients are registered at an issuer within a day, however often it forgets them. */
const MAX_PER_DAY = 3;
const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

/**
 * The client to use with an issuer: the one registered beforehand, else our metadata document where the issuer takes
 * such, else the one registered before, else a new one (RFC 7591), else an error that names the way out.
 *
 * @throws `AgentAuthError` `no_registration`, `bad_registration`, or the issuer's own error
 */
export async function obtainClient(registration: Registration): Promise<ClientRecord> {
  const { server, preRegistered, clientMetadataUrl, redirectUri, store, now } = registration;
  checkRedirect(redirectUri);
  const base = { issuer: server.issuer, redirectUri, clientSecret: undefined, secretExpiresAt: undefined } as const;
  if (preRegistered) return { ...preRegisteredClient({ ...registration, client: preRegistered }), redirectUri };
  if (clientMetadataUrl !== undefined && server.takesClientIdDocuments) {
    return { ...base, clientId: checkDocumentUrl(clientMetadataUrl), authMethod: "none", source: "metadata-document" };
  }
  const form = redirectForm(redirectUri);
  const known = await store.readClient(server.issuer, form);
  if (known && isUsable(known, now)) return known;
  return exclusively(registration, form, async () => {
    // Whoever was alone with it before may have registered what we came for.
    const made = await store.readClient(server.issuer, form);
    if (made && isUsable(made, now)) return made;
    const client = {
      ...(await register(registration)),
      registeredAt: [...(made ? registrationsToday(made, now) : []), now],
    };
    await store.saveClient(client, form);
    return client;
  });
}

/** Keeps in mind that an issuer no longer takes a client that was registered there, so that another one is registered. */
export async function refuseClient(
  registration: Pick<Registration, "store" | "signal">,
  client: ClientRecord,
  form: string,
): Promise<void> {
  const { store } = registration;
  await exclusively({ ...registration, server: client }, form, async () => {
    const known = await store.readClient(client.issuer, form);
    if (known?.clientId === client.clientId) await store.saveClient({ ...known, isRefused: true }, form);
  });
}

/** Runs what changes the client of an issuer, in one process at a time. */
function exclusively<T>(
  { store, server, signal }: Pick<Registration, "store" | "signal"> & { server: { issuer: string } },
  form: string,
  work: () => Promise<T>,
): Promise<T> {
  return store.lease(`client ${server.issuer} ${form}`, work, { duration: HEARTBEAT_MS, extend: true, signal });
}

/** Whether a client can be used: one that is no longer good is, where too many came after one another already. */
function isUsable(client: ClientRecord, now: number): boolean {
  return isLimitReached(client, now) || !(client.isRefused || expiresSoon(client, now));
}

/**
 * Whether no further client is registered at the issuer today. An issuer on this machine is restarted by whoever works
 * on it, and forgets its clients as often.
 */
function isLimitReached(client: ClientRecord, now: number): boolean {
  return registrationsToday(client, now).length >= MAX_PER_DAY && !isLoopbackHost(new URL(client.issuer).hostname);
}

/** When clients were registered in the place of this one within the last day, this one among them. */
function registrationsToday({ registeredAt = [] }: ClientRecord, now: number): number[] {
  return registeredAt.filter((at) => at <= now && now - at < DAY_MS);
}

/** The code comes back to this address: to this machine or over TLS, never in the clear (OAuth 2.1 section 2.3.1). */
function checkRedirect(redirectUri: string): void {
  const url = URL.canParse(redirectUri) ? new URL(redirectUri) : undefined;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackHost(url.hostname))) return;
  throw new TypeError(`the redirect address ${quote(redirectUri)} must be https, or http to this machine`);
}

/** Which registrations can serve a redirect address: the port of a loopback address may vary (RFC 8252 section 7.3). */
export function redirectForm(redirectUri: string): string {
  const url = new URL(redirectUri);
  if (url.protocol === "http:") url.port = "";
  return url.href;
}

function expiresSoon(client: ClientRecord, now: number): boolean {
  return client.secretExpiresAt !== undefined && client.secretExpiresAt - now < 60_000;
}

/** Registers with all that may be wanted; where the server does not like that, with less of it. */
async function register(registration: Registration): Promise<ClientRecord> {
  const { scope, server } = registration;
  // What the server says that it does, a login may come to need: its client is not registered a second time.
  const exchanges = server.grantTypesSupported?.includes(TOKEN_EXCHANGE) === true;
  const withExchange = { ...registration, moreGrants: [...(registration.moreGrants ?? []), TOKEN_EXCHANGE] };
  const clients = exchanges ? [withExchange, registration] : [registration];
  // A server may know the scopes of a resource from the resource alone.
  const attempts = clients.flatMap((client) => (scope.length > 0 ? [client, { ...client, scope: [] }] : [client]));
  let refusal: unknown;
  for (const attempt of attempts) {
    try {
      return await registerOnce(attempt);
    } catch (error) {
      if (!isAgentAuthError(error) || error.code !== "invalid_client_metadata") throw error;
      refusal = error;
    }
  }
  throw refusal;
}

async function registerOnce(registration: Registration): Promise<ClientRecord> {
  const { http, server, redirectUri, clientName, scope, moreGrants = [], trace, signal } = registration;
  const url = server.registrationEndpoint;
  if (url === undefined) {
    throw new AgentAuthError(
      "no_registration",
      `the authorization server ${quote(server.issuer)} has no registration_endpoint, so it must know this client beforehand`,
      {
        class: "auth",
        hint: "give the client it knows with --client-id (secret in AGENTAUTH_CLIENT_SECRET), or --client-metadata-url",
      },
    );
  }
  const metadata = {
    client_name: clientName,
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code", "refresh_token", ...moreGrants],
    response_types: ["code"],
    token_endpoint_auth_method: preferredMethod(server),
    application_type: "native",
    ...(scope.length > 0 && { scope: scope.join(" ") }),
  };
  const entry = { step: "registration", method: "POST", url } as const;
  let status: number | undefined;
  try {
    const response = await oauth.dynamicClientRegistrationRequest(
      { issuer: server.issuer, registration_endpoint: url },
      metadata as Parameters<typeof oauth.dynamicClientRegistrationRequest>[1],
      {
        [oauth.customFetch]: http.fetcher({ signal }) as never,
        [oauth.allowInsecureRequests]: true,
      },
    );
    status = response.status;
    // RFC 7591 asks for 201; servers that say 200 mean the same.
    const created = status === 200 ? new Response(response.body, { status: 201, headers: response.headers }) : response;
    const answer = await oauth.processDynamicClientRegistrationResponse(created);
    const client = checkAnswer(answer as Record<string, unknown>, registration, metadata.token_endpoint_auth_method);
    trace({ ...entry, status, used: true, why: `registered as ${client.clientId.slice(0, 80)}` });
    return client;
  } catch (thrown) {
    const error = oauthError(thrown, url);
    trace({ ...entry, status, used: false, why: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

function checkAnswer(
  answer: Record<string, unknown>,
  { server, redirectUri }: Registration,
  asked: AuthMethod,
): ClientRecord {
  const from = server.registrationEndpoint ?? "";
  const complain = (field: string, value: unknown, rule: string) =>
    refused("bad_registration", { field, value, from, rule });
  const {
    client_id: clientId,
    client_secret: secret,
    redirect_uris: redirects,
    client_secret_expires_at: ends,
  } = answer;
  if (typeof clientId !== "string" || clientId.length > 2048 || !/^[\x20-\x7e]+$/.test(clientId)) {
    throw complain(
      "client_id",
      clientId,
      "must be a non-empty string of visible ASCII characters (RFC 7591 section 3.2.1)",
    );
  }
  if (secret !== undefined && secret !== null && (typeof secret !== "string" || secret.length > 8192)) {
    throw complain("client_secret", "(not shown)", "must be a string (RFC 7591 section 3.2.1)");
  }
  if (
    redirects !== undefined &&
    !(Array.isArray(redirects) && redirects.length === 1 && redirects[0] === redirectUri)
  ) {
    throw complain("redirect_uris", redirects, `must be the one that was asked for, ${redirectUri}`);
  }
  // The answer decides, whatever was asked for (RFC 7591 section 3.2.1).
  const method = answer["token_endpoint_auth_method"] ?? (secret ? asked : "none");
  if (!SUPPORTED_METHODS.includes(method as AuthMethod)) {
    throw complain("token_endpoint_auth_method", method, `must be one of ${SUPPORTED_METHODS.join(", ")}`);
  }
  if (method !== "none" && !secret) throw complain("client_secret", undefined, `is needed for ${String(method)}`);
  return {
    issuer: server.issuer,
    clientId,
    clientSecret: secret ? new Secret(secret) : undefined,
    secretExpiresAt: typeof ends === "number" && ends > 0 ? ends * 1000 : undefined,
    authMethod: method as AuthMethod,
    source: "dynamic",
    redirectUri,
  };
}

/**
 * Whether the issuer still knows a client, found out by asking the authorization endpoint without following it: where
 * it has forgotten a client it says so in the browser, and no callback would ever come. A page that cannot be read here may
 * be one that a browser shows: only a plain no is one.
 */
export async function isForgotten(
  http: OAuthHttp,
  authorizationUrl: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const reply = await http.probe(authorizationUrl, signal).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    return undefined;
  });
  const status = reply?.status;
  return status === 400 || status === 401 || status === 403 || status === 404 || status === 422;
}

function checkDocumentUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol === "https:" && url.pathname !== "/" && url.hash === "" && url.username === "") return value;
  throw new AgentAuthError(
    "usage",
    `the client metadata address ${quote(value)} must be an https address with a path`,
    { class: "usage" },
  );
}
