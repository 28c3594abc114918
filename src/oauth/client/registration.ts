import * as oauth from "oauth4webapi";
import { type Advice, AgentAuthError, errorMessage, isAgentAuthError, usageError } from "../../errors.js";
import { isLoopbackHost, parseUrl, secureAddress } from "../../http/address.js";
import { parseIfJson } from "../../http/buffered-response.js";
import { HttpResponse } from "../../http/http-message.js";
import { serverMetadataAddresses } from "../../http/oauth-syntax.js";
import { refusalError } from "../../http/refuse.js";
import { isJsonObject } from "../../http/strict-json.js";
import { quote, Secret } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import type { OAuthHttp, TraceEntry } from "../http/http.js";
import { mapErrorCode, oauthError, readWords, serverWords } from "../http/oauth-error.js";
import { bearerChallenge } from "../model/challenge.js";
import type { AuthMethod, ClientRecord } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import { HEARTBEAT_MS, type Lease, rethrowRecentFailure } from "../model/lease.js";
import { type IssuerMetadata, listsExchange, type ServerMetadata, TOKEN_EXCHANGE } from "../model/metadata.js";
import type { PreRegisteredClient } from "./client-auth.js";
import { chosenMethod, preferredMethod, preRegisteredClient, SUPPORTED_METHODS } from "./client-auth.js";
import { DAY_MS, findDocumentUrlProblem, usesDocument } from "./metadata-document.js";

export interface RefusedRegistration {
  response: Response;
  text: string;
  url: string;
  redirectUri: string;
  server: NonRegistering;
}

type NonRegistering = Pick<ServerMetadata, "issuer" | "takesClientIdDocuments">;

const CODE = /^[\w.-]{1,64}$/;

/**
 * The error for a registration that an issuer refused: with the issuer's own words, whatever the form of its response,
 * and with the option that helps.
 *
 * @param error the error by RFC 7591, whose class and status are used
 */
function registrationRefused(error: AgentAuthError, refused: RefusedRegistration): AgentAuthError {
  const { response, text, url, redirectUri } = refused;
  const body = response.headers.get("content-type")?.includes("json") ? parseIfJson(text) : undefined;
  const code = isJsonObject(body) ? body["error"] : undefined;
  const named = typeof code === "string" && CODE.test(code) ? code : bearerChallenge(response.headers)?.error;
  const words = readWords(response, text, named);
  const shown = serverWords(response, text, named);
  const asked = named === "invalid_redirect_uri" ? ` of ${redirectUri}` : "";
  const what = named === undefined ? `HTTP ${error.status}` : quote(named, 60);
  return new AgentAuthError(
    named === undefined ? "http_error" : mapErrorCode(named),
    `${url} refused the registration${asked} with ${what}${shown === undefined ? "" : `: ${shown}`}`,
    { class: error.class, status: error.status, url, ...adviceFor(named, words ?? "", refused) },
  );
}

/** What helps, by the words of the issuer. They choose between fixed advice, and no part of them is advice. */
function adviceFor(
  code: string | undefined,
  words: string,
  { response, redirectUri, server }: RefusedRegistration,
): Advice {
  const host = findOtherHost(code, words, redirectUri);
  if (host !== undefined) {
    const hint = `set redirectHost of the login to ${quote(host)}`;
    return { hint, remedy: { action: "configure", option: "redirectHost", value: host } };
  }
  if (/client[_ -]?name|allow-?list|white-?list|approved clients?/i.test(words)) {
    const hint = "set clientName to a name that this issuer allows, if it is yours to use";
    return { hint, remedy: { action: "configure", option: "clientName" } };
  }
  const isBare = (response.status === 401 || response.status === 403) && words.length < 40;
  return adviseWithoutRegistration(server, isBare);
}

/** What helps where an issuer registers no clients, or refuses to register this one. */
export function adviseWithoutRegistration(
  { issuer: clientIssuer, takesClientIdDocuments }: NonRegistering,
  mayWantName = false,
): Advice {
  const hint = "give the client it knows as client";
  const also = takesClientIdDocuments ? "clientMetadataUrl" : mayWantName ? "clientName" : undefined;
  const remedy: Remedy = { action: "configure", option: "client", clientIssuer, ...(also && { also }) };
  return { hint: also === undefined ? hint : `${hint}, or ${also}`, remedy };
}

/**
 * The loopback host to try in place of the one that was refused. `localhost` also where the issuer does not say which
 * one it wants; the other way round only where the words name it, so that two refusals do not lead in a circle.
 */
function findOtherHost(code: string | undefined, words: string, redirectUri: string): string | undefined {
  const { hostname } = new URL(redirectUri);
  // The issuer may quote the address.
  const own = words.replaceAll(redirectUri, " ");
  if (hostname === "127.0.0.1") {
    if (refusesHost(own, "localhost")) return undefined;
    const isAboutRedirect = code === "invalid_redirect_uri" || /redirect|callback|loopback|127\.0\.0\.1/i.test(own);
    return /localhost/i.test(own) || (isAboutRedirect && !/https|trusted/i.test(own)) ? "localhost" : undefined;
  }
  if (hostname !== "localhost" || refusesHost(own, "127.0.0.1")) return undefined;
  return refusesHost(own, "localhost") || /127\.0\.0\.1|loopback ip/i.test(own) ? "127.0.0.1" : undefined;
}

function refusesHost(words: string, host: string): boolean {
  const name = host.replaceAll(".", "\\.");
  const after = `(?<!(?:other than|except|only|but) )\\b${name}\\b(?:[\\w:/*"' ]{0,30}) (?:is|are|be|was) (?:not|forbidden|disallowed|refused)`;
  return new RegExp(`${after}|\\b(?:not|no) (?:allow |permit |accept |use )?${name}\\b`, "i").test(words);
}

/**
 * Whether the issuer has forgotten a client, by a request to the authorization endpoint without following redirects:
 * the issuer reports that in the browser only, without a callback. Only a rejection counts, since a page may be readable
 * in a browser only. Servers that look the client up without a check fail with 500, and others redirect to a page of
 * their own with the error in its address.
 */
export async function isForgotten(
  http: OAuthHttp,
  { authorizationUrl, redirectUri }: { authorizationUrl: string; redirectUri: string },
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const reply = await http.probe(authorizationUrl, signal).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    return undefined;
  });
  if (reply === undefined) return false;
  const { status, headers } = reply.response;
  const page = parseUrl(headers.get("location") ?? "", new URL(authorizationUrl));
  // An error at the callback is the response to the login.
  const error = page?.href.startsWith(redirectUri) ? undefined : page?.searchParams.get("error");
  return REJECTIONS.includes(status) || OF_CLIENT.includes(error ?? "");
}

const REJECTIONS = [400, 401, 403, 404, 422, 500];
/** The errors of a client, by RFC 6749 sections 4.1.2.1 and 5.2, and RFC 7591 section 3.2.2. */
const OF_CLIENT = ["invalid_client", "unauthorized_client", "invalid_redirect_uri"];

export interface Registration {
  http: OAuthHttp;
  server: ServerMetadata;
  store: GrantStore;
  profile: string;
  redirectUri: string;
  /** The name to register; undefined for the default one, or that of a stored client. */
  clientName: string | undefined;
  preRegistered: PreRegisteredClient | undefined;
  /** The address of our client id metadata document, if we publish one. */
  clientMetadataUrl: string | undefined;
  scope: readonly string[];
  moreGrants?: readonly string[];
  now: number;
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}

const DEFAULT_NAME = "agentauth";
/** Refusals of what a registration asks for; one that asks for less may succeed. */
const TOO_MUCH: readonly string[] = ["invalid_client_metadata", "invalid_scope", "insufficient_scope"];
/** Maximum registrations at an issuer within a day, even if it forgets the clients. */
const MAX_PER_DAY = 3;

/**
 * The client to use with an issuer: the pre-registered one, else our metadata document if the issuer supports that,
 * else the one from an earlier registration, else a new one (RFC 7591), else an error with the alternatives.
 *
 * @throws `AgentAuthError` `no_registration`, `bad_registration`, or the issuer's own error
 */
export async function obtainClient(registration: Registration): Promise<ClientRecord> {
  const { server, preRegistered, clientMetadataUrl, redirectUri, store } = registration;
  checkRedirect(redirectUri);
  const issuer = clientIssuer(server);
  const base = { issuer, redirectUri, clientSecret: undefined, secretExpiresAt: undefined } as const;
  if (preRegistered) return { ...preRegisteredClient({ ...registration, client: preRegistered }), redirectUri };
  if (clientMetadataUrl !== undefined && (await usesDocument(registration, issuer)))
    return { ...base, clientId: checkDocumentUrl(clientMetadataUrl), authMethod: "none", source: "metadata-document" };
  const form = redirectForm(redirectUri);
  const known = await store.readClient(issuer, form);
  if (known && isUsable(known, registration)) return known;
  return runExclusively(registration, issuer, form, async (lease) => {
    // Another process may have registered the client while this one waited.
    const newer = await store.readClient(issuer, form);
    if (newer && isUsable(newer, registration)) return newer;
    // A server that asked to wait gets no second request before that.
    rethrowRecentFailure(lease, registration.now, "forced");
    const client = {
      ...(await register(registration)),
      registeredAt: [...(newer ? registrationsToday(newer, registration.now) : []), registration.now],
    };
    await store.saveClient(client, form);
    return client;
  });
}

/**
 * The issuer that a registered client is stored for. Metadata that are not the issuer's own get neither the client that
 * it registered, nor may they register one for it.
 */
export function clientIssuer({ issuer, namedIssuer, url }: IssuerMetadata): string {
  const isOwn = namedIssuer === undefined || serverMetadataAddresses(issuer).flat().includes(url);
  return isOwn ? issuer : namedIssuer;
}

/** Stores that an issuer rejects a client that was registered there, so that another one is registered. */
export async function refuseClient(
  registration: Pick<Registration, "store" | "signal">,
  client: ClientRecord,
  form: string,
): Promise<void> {
  const { store } = registration;
  await runExclusively(registration, client.issuer, form, async () => {
    const known = await store.readClient(client.issuer, form);
    if (known?.clientId === client.clientId) await store.saveClient({ ...known, isRefused: true }, form);
  });
}

/** Runs work that changes the client of an issuer, in one process at a time. */
function runExclusively<T>(
  { store, signal }: Pick<Registration, "store" | "signal">,
  issuer: string,
  form: string,
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  const options = { durationMs: HEARTBEAT_MS, extend: true, shared: true, signal };
  return store.lease(`client ${issuer} ${form}`, work, options);
}

/**
 * Whether a client can be used. A rejected or expiring one, and one under another name, is used anyway once the daily
 * limit is reached.
 */
function isUsable(client: ClientRecord, { clientName, now }: Pick<Registration, "clientName" | "now">): boolean {
  const isOther = clientName !== undefined && clientName !== client.clientName;
  const expiresSoon = client.secretExpiresAt !== undefined && client.secretExpiresAt - now < 60_000;
  return isLimitReached(client, now) || !(client.isRefused || isOther || expiresSoon);
}

/**
 * Whether the daily limit of registrations is reached. It does not apply to an issuer on this machine, which forgets
 * its clients at every restart during development.
 */
function isLimitReached(client: ClientRecord, now: number): boolean {
  return registrationsToday(client, now).length >= MAX_PER_DAY && !isLoopbackHost(new URL(client.issuer).hostname);
}

/** Times of the registrations within the last day, up to and including this client's. */
function registrationsToday({ registeredAt = [] }: ClientRecord, now: number): number[] {
  return registeredAt.filter((at) => at <= now && now - at < DAY_MS);
}

/** The code comes back to this address: to this machine or over TLS, never in the clear (OAuth 2.1 section 2.3.1). */
function checkRedirect(redirectUri: string): void {
  if (secureAddress(redirectUri)) return;
  throw new TypeError(`the redirect address ${quote(redirectUri)} must be https, or http to this machine`);
}

/** Which registrations can serve a redirect address: the port of a loopback address may vary (RFC 8252 section 7.3). */
export function redirectForm(redirectUri: string): string {
  const url = new URL(redirectUri);
  if (url.protocol === "http:") url.port = "";
  return url.href;
}

/** Registers with all metadata that may be needed; if the server rejects that, with less. */
async function register(registration: Registration): Promise<ClientRecord> {
  const { scope, server } = registration;
  // Request token exchange if the server supports it: a later login must not need a second registration.
  const exchanges = listsExchange(server) === true;
  const withExchange = { ...registration, moreGrants: [...(registration.moreGrants ?? []), TOKEN_EXCHANGE] };
  const clients = exchanges ? [withExchange, registration] : [registration];
  // The server may not know the scopes of a resource.
  const attempts = clients.flatMap((client) => (scope.length > 0 ? [client, { ...client, scope: [] }] : [client]));
  let refusal: unknown;
  for (const attempt of attempts) {
    try {
      return await registerOnce(attempt);
    } catch (error) {
      if (!isAgentAuthError(error) || !TOO_MUCH.includes(error.code)) throw error;
      refusal = error;
    }
  }
  throw refusal;
}

async function registerOnce(registration: Registration): Promise<ClientRecord> {
  const { http, server, redirectUri, clientName = DEFAULT_NAME, scope, moreGrants = [], trace, signal } = registration;
  const url = server.registrationEndpoint;
  if (url === undefined) {
    const where = redirectUri.startsWith("https:") ? `, with the redirect address ${redirectUri}` : "";
    const message = `the authorization server ${quote(server.issuer)} has no registration_endpoint, so this client must be registered beforehand${where}`;
    throw new AgentAuthError("no_registration", message, { class: "auth", ...adviseWithoutRegistration(server) });
  }
  const metadata = {
    client_name: clientName,
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code", "refresh_token", ...moreGrants],
    response_types: ["code"],
    token_endpoint_auth_method: preferredMethod(server),
    // OpenID Connect Dynamic Client Registration, section 2: https redirect addresses are of web clients.
    application_type: redirectUri.startsWith("https:") ? "web" : "native",
    ...(scope.length > 0 && { scope: scope.join(" ") }),
  };
  const entry = { step: "registration", method: "POST", url } as const;
  let status: number | undefined;
  let response: Response | undefined;
  let text = "";
  try {
    response = await oauth.dynamicClientRegistrationRequest(
      { issuer: server.issuer, registration_endpoint: url },
      metadata as Parameters<typeof oauth.dynamicClientRegistrationRequest>[1],
      { [oauth.customFetch]: http.fetcher({ signal }) as never, [oauth.allowInsecureRequests]: true },
    );
    status = response.status;
    if (!response.ok) text = await response.clone().text();
    // RFC 7591 requires 201; some servers send 200.
    const created =
      status === 200 ? new HttpResponse(await response.text(), { status: 201, headers: response.headers }) : response;
    const parsed = await oauth.processDynamicClientRegistrationResponse(created);
    const client = checkResponse(parsed as RegistrationResponse, registration, metadata.token_endpoint_auth_method);
    trace({ ...entry, status, used: true, why: `registered as ${client.clientId.slice(0, 80)}` });
    return client;
  } catch (thrown) {
    const failure = withWait(oauthError(thrown, url));
    const isDecision = isAgentAuthError(failure) && (failure.class === "remote" || failure.class === "auth");
    const error =
      response && isDecision ? registrationRefused(failure, { response, text, url, redirectUri, server }) : failure;
    trace({ ...entry, status, used: false, why: errorMessage(error) });
    throw error;
  }
}

/** The failure with the time to wait in its message, where the server said one. */
function withWait(failure: unknown): unknown {
  if (!isAgentAuthError(failure) || failure.retryAfter === undefined) return failure;
  const { code, message, retryAfter, class: kind, status, url } = failure;
  const text = `${message}; it asks to wait ${retryAfter} s before the next registration`;
  return new AgentAuthError(code, text, { class: kind, status, url, retryAfter });
}

/** What oauth4webapi has checked of a response. */
type RegistrationResponse = Record<string, unknown> & { client_id: string; client_secret?: string };

function checkResponse(
  response: RegistrationResponse,
  { server, redirectUri, clientName = DEFAULT_NAME }: Registration,
  requestedMethod: AuthMethod,
): ClientRecord {
  const from = server.registrationEndpoint ?? "";
  const complain = (field: string, value: unknown, rule: string) =>
    refusalError("bad_registration", { field, value, from, rule });
  const { client_id: clientId, client_secret: secret, redirect_uris: redirects } = response;
  const { client_secret_expires_at: expiresAt } = response;
  if (clientId.length > 2048 || !/^[\x20-\x7e]+$/.test(clientId)) {
    const rule = "must be a non-empty string of visible ASCII characters (RFC 7591 section 3.2.1)";
    throw complain("client_id", clientId, rule);
  }
  if (secret !== undefined && secret.length > 8192)
    throw complain("client_secret", "(not shown)", "must be at most 8192 characters long");
  if (
    redirects !== undefined &&
    !(Array.isArray(redirects) && redirects.length === 1 && redirects[0] === redirectUri)
  ) {
    const rule = `must be the requested one, ${redirectUri}: the server's owner must have it registered as it was sent, or refused (RFC 7591 section 3.2.2)`;
    throw complain("redirect_uris", redirects, rule);
  }
  // The response decides, not the request (RFC 7591 section 3.2.1).
  const method = response["token_endpoint_auth_method"] ?? requestedMethod;
  if (!SUPPORTED_METHODS.includes(method as AuthMethod))
    throw complain("token_endpoint_auth_method", method, `must be one of ${SUPPORTED_METHODS.join(", ")}`);
  return {
    issuer: clientIssuer(server),
    clientId,
    clientSecret: secret ? new Secret(secret) : undefined,
    secretExpiresAt: secret && typeof expiresAt === "number" && expiresAt > 0 ? expiresAt * 1000 : undefined,
    // Some servers repeat the method of the request and issue no secret: the client is a public one.
    ...chosenMethod(secret ? (method as AuthMethod) : "none", server),
    source: "dynamic",
    redirectUri,
    clientName,
  };
}

function checkDocumentUrl(value: string): string {
  const problem = findDocumentUrlProblem(value);
  if (problem === undefined) return value;
  throw usageError(`the client metadata address ${quote(value)} ${problem}`);
}
