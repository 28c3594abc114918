import { AgentAuthError, isAgentAuthError, withHint } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { SingleFlight } from "../http/single-flight.js";
import { quote, Secret } from "../redact.js";
import type { Remedy } from "../remedy.js";
import { preRegisteredClient } from "./client/client-auth.js";
import { credentialOf, holdToIssuer } from "./client/issuer-binding.js";
import { discoverIssuer } from "./discovery/discovery.js";
import { acceptedTypeFor } from "./discovery/overrides.js";
import type { LoginContext } from "./login/login-context.js";
import { hashSha256 } from "./machine/grant-strategies.js";
import type { Grant } from "./model/grant.js";
import { listsExchange } from "./model/metadata.js";
import { type ExchangedToken, type ExchangeRequest, exchangeTokens } from "./token/exchange.js";
import type { TokenCall } from "./token/token.js";

/**
 * Options of `agent.exchange`: a request of RFC 8693 whose subject token defaults to the server's own access
 * token.
 */
export interface ExchangeOptions extends Omit<ExchangeRequest, "subjectToken"> {
  /** Default: the access token of the MCP server. It is never stored. */
  subjectToken?: string | Secret | undefined;
  /** Whether to log in if the server's own token needs it. Default: true if the client has a `login` method. */
  login?: boolean | undefined;
  /** Aborts the exchange. */
  signal?: AbortSignal | undefined;
}

/** What an exchange needs from its agent. */
export interface ExchangeContext {
  clock: Pick<Clock, "epoch">;
  /** The server's own grant, ready for use. */
  grant(options: Pick<ExchangeOptions, "login" | "signal">): Promise<Grant>;
  /** The client at the server's issuer, for a token from elsewhere; undefined if no client is known. */
  client(signal: AbortSignal | undefined): Promise<ClientCall | undefined>;
  /** A request by the client of a grant. */
  callOf(grant: Grant): Promise<ClientCall>;
}

/** A cached token is not returned if it expires within this time. */
const MARGIN_MS = 60_000;
const MAX_CACHED = 256;

/** Exchanges tokens and caches the results in memory. */
export class ExchangeCache {
  readonly #cached = new Map<string, ExchangedToken>();
  readonly #inFlight = new SingleFlight<ExchangedToken>();

  /** @throws as `exchangeTokens`, and `login_required` if no client is known */
  async get(server: string, options: ExchangeOptions, context: ExchangeContext): Promise<ExchangedToken> {
    const { subjectToken, login, signal, ...rest } = options;
    const grant = subjectToken === undefined ? await context.grant({ login, signal }) : undefined;
    const call = await (grant ? context.callOf(grant) : context.client(signal));
    if (call === undefined) throw noClientError(server);
    if (call.exchanges === false) throw notListedError(call.issuer);
    const subject = grant ? grant.tokens.accessToken : subjectToken;
    const request: ExchangeRequest = { ...rest, subjectToken: subject ?? "" };
    const key = await cacheKeyOf(call, request);
    const cached = this.#cached.get(key);
    if (cached?.expiresAt !== undefined && cached.expiresAt.getTime() - MARGIN_MS > context.clock.epoch())
      return cached;
    this.#cached.delete(key);
    const work = (within: AbortSignal) =>
      exchangeTokens({ ...call, signal: within }, request).catch(rethrowWithExchangeHint);
    const token = await this.#inFlight.run(key, work, signal);
    this.#put(key, token);
    return token;
  }

  #put(key: string, token: ExchangedToken): void {
    if (token.expiresAt === undefined) return;
    this.#cached.set(key, token);
    if (this.#cached.size > MAX_CACHED)
      for (const oldest of this.#cached.keys()) return void this.#cached.delete(oldest);
  }
}

/** Hash of everything that an exchanged token depends on, so that the cache does not hold the input tokens. */
function cacheKeyOf(call: ClientCall, request: ExchangeRequest): Promise<string> {
  const { subjectToken, subjectTokenType, actorToken, actorTokenType, requestedTokenType } = request;
  const plain = (token: string | Secret | undefined) => (token instanceof Secret ? token.reveal() : token);
  const tokens = [plain(subjectToken), subjectTokenType, plain(actorToken), actorTokenType, requestedTokenType];
  const target = [request.audience, request.resource, request.scope];
  // JSON would serialize undefined as null.
  const parts = [call.issuer, call.tokenEndpoint, call.client.clientId, ...tokens, ...target];
  return hashSha256(JSON.stringify(parts.map((part) => (part === undefined ? [] : part))));
}

const HINTS: Readonly<Record<string, readonly [hint: string, remedy?: Remedy]>> = {
  invalid_target: ["ask for an audience or a resource that the issuer gives tokens for"],
  invalid_scope: ["ask for scopes that the token has which is exchanged"],
  unauthorized_client: [
    "the client has to be allowed token exchange at the issuer",
    { action: "configure", option: "clientId" },
  ],
  unsupported_grant_type: ["the issuer does not exchange tokens", { action: "inspect", subject: "grants" }],
};

function rethrowWithExchangeHint(thrown: unknown): never {
  if (!isAgentAuthError(thrown) || thrown.hint !== undefined || thrown.remedy !== undefined) throw thrown;
  const [hint, remedy] = (Object.hasOwn(HINTS, thrown.code) && HINTS[thrown.code]) || [];
  throw hint === undefined ? thrown : withHint(thrown, hint, remedy);
}

function noClientError(server: string): AgentAuthError {
  const message = `an exchange at the issuer of ${quote(server)} needs a registered client, and there is no login yet`;
  const hint = "name one with client.clientId, or log in first";
  const remedy = { action: "login", server, option: "clientId" } as const;
  return new AgentAuthError("login_required", message, { class: "auth", hint, remedy });
}

/** The error for an issuer without token exchange: the token is not sent. */
function notListedError(issuer: string): AgentAuthError {
  const message = `the metadata of ${quote(issuer)} list grant types (grant_types_supported) without token exchange (RFC 8693): nothing was sent`;
  const hint = "log in again if the issuer has begun to exchange tokens";
  const remedy = { action: "inspect", subject: "grants" } as const;
  return new AgentAuthError("unsupported_grant_type", message, { class: "remote", hint, remedy });
}

/** A request by a client, without its signal. */
export interface ClientCall extends Omit<TokenCall, "signal"> {
  /** Whether the issuer lists token exchange; undefined if it lists no grant types. */
  exchanges?: boolean | undefined;
}

/** A request by the client of the options, at the issuer that a server names; undefined without such a client. */
export async function callForClient(
  context: LoginContext,
  mcpUrl: string,
  signal: AbortSignal | undefined,
): Promise<ClientCall | undefined> {
  const { preRegistered, http, clock, trace } = context;
  if (preRegistered === undefined) return undefined;
  const { issuer: server, server: named } = await discoverIssuer(
    { ...context, chosenIssuer: undefined, sendsCredential: true },
    mcpUrl,
    undefined,
    signal,
  );
  // The token to exchange is a credential too.
  const credential = credentialOf(preRegistered) ?? "the token to exchange";
  const use = { client: preRegistered, issuer: server.issuer, server: named, credential, isInteractive: false, signal };
  await holdToIssuer(context, use);
  const client = preRegisteredClient({ ...context, client: preRegistered, server, isMachine: true });
  const { issuer, tokenEndpoint } = server;
  const acceptedTokenType = acceptedTypeFor(server, context);
  const { privateKey } = preRegistered;
  return {
    http,
    clock,
    issuer,
    tokenEndpoint,
    client,
    privateKey,
    acceptedTokenType,
    trace,
    exchanges: listsExchange(server),
  };
}
