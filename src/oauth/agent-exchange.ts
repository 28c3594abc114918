import { AgentAuthError, isAgentAuthError, withHint } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { SingleFlight } from "../http/single-flight.js";
import { quote, Secret, shellWord } from "../redact.js";
import type { ClientCall } from "./agent-calls.js";
import type { Grant } from "./grant/grant.js";
import { sha256 } from "./machine/machine-grant.js";
import { type ExchangedToken, type ExchangeRequest, exchangeTokens } from "./token/exchange.js";

/** What `agent.exchange` asks for: as {@link ExchangeRequest}, with the server's own access token where none is given. */
export interface ExchangeOptions extends Omit<ExchangeRequest, "subjectToken"> {
  /** Default: the access token of the MCP server. It is never stored. */
  subjectToken?: string | Secret | undefined;
  /** Whether the user may be asked to log in for the server's own token. Default: whether the client has a way to. */
  login?: boolean | undefined;
  /** Ends the exchange. */
  signal?: AbortSignal | undefined;
}

/** What an exchange needs of its agent. */
export interface ExchangeContext {
  clock: Pick<Clock, "epoch">;
  /** The server's own grant, good for use. */
  grant(options: Pick<ExchangeOptions, "login" | "signal">): Promise<Grant>;
  /** Who asks at the server's issuer, where the token does not come from there; undefined where no client is known. */
  client(signal: AbortSignal | undefined): Promise<ClientCall | undefined>;
  /** How a request with the client of a grant is made. */
  callOf(grant: Grant): ClientCall;
}

/** An exchanged token is not given out any more when it ends within this time. */
const MARGIN_MS = 60_000;
const MAX_CACHED = 256;

/** Exchanges tokens, and remembers in this process what they were exchanged for. */
export class ExchangeCache {
  readonly #cached = new Map<string, ExchangedToken>();
  readonly #inFlight = new SingleFlight<ExchangedToken>();

  /** @throws as `exchangeTokens`, and `login_required` where no client is known that could ask */
  async get(server: string, options: ExchangeOptions, context: ExchangeContext): Promise<ExchangedToken> {
    const { subjectToken, login, signal, ...rest } = options;
    const grant = subjectToken === undefined ? await context.grant({ login, signal }) : undefined;
    const call = grant ? context.callOf(grant) : await context.client(signal);
    if (call === undefined) throw noClient(server);
    const subject = grant ? grant.tokens.accessToken : subjectToken;
    const request: ExchangeRequest = { ...rest, subjectToken: subject ?? "" };
    const name = await cacheKeyOf(call, request);
    const kept = this.#cached.get(name);
    if (kept?.expiresAt !== undefined && kept.expiresAt.getTime() - MARGIN_MS > context.clock.epoch()) return kept;
    this.#cached.delete(name);
    const work = (within: AbortSignal) => exchangeTokens({ ...call, signal: within }, request).catch(rethrowWithHint);
    const token = await this.#inFlight.run(name, work, signal);
    this.#put(name, token);
    return token;
  }

  #put(name: string, token: ExchangedToken): void {
    if (token.expiresAt === undefined) return;
    this.#cached.set(name, token);
    if (this.#cached.size > MAX_CACHED)
      for (const oldest of this.#cached.keys()) return void this.#cached.delete(oldest);
  }
}

/** All that an exchanged token depends on, as one hash: the tokens themselves are not remembered. */
function cacheKeyOf(call: ClientCall, request: ExchangeRequest): Promise<string> {
  const { subjectToken, subjectTokenType, actorToken, actorTokenType, requestedTokenType } = request;
  const plain = (token: string | Secret | undefined) => (token instanceof Secret ? token.reveal() : token);
  const tokens = [plain(subjectToken), subjectTokenType, plain(actorToken), actorTokenType, requestedTokenType];
  const wanted = [request.audience, request.resource, request.scope];
  // JSON would write what is not there as it writes null.
  const parts = [call.issuer, call.tokenEndpoint, call.client.clientId, ...tokens, ...wanted];
  return sha256(JSON.stringify(parts.map((part) => (part === undefined ? [] : part))));
}

const HINTS: Readonly<Record<string, string>> = {
  invalid_target: "ask for an audience or a resource that the issuer gives tokens for",
  invalid_scope: "ask for scopes that the token has which is exchanged",
  unauthorized_client: "the client has to be allowed token exchange at the issuer; --client-id names another one",
  unsupported_grant_type:
    "the issuer does not exchange tokens; agentauth discover <mcp_url> shows which grants it names",
};

function rethrowWithHint(thrown: unknown): never {
  if (!isAgentAuthError(thrown) || thrown.hint !== undefined || !Object.hasOwn(HINTS, thrown.code)) throw thrown;
  throw withHint(thrown, HINTS[thrown.code]);
}

function noClient(server: string): AgentAuthError {
  return new AgentAuthError(
    "login_required",
    `an exchange at the issuer of ${quote(server)} needs a client that it knows, and nobody has signed in there yet`,
    { class: "auth", hint: `name one with --client-id, or sign in first: agentauth login ${shellWord(server)}` },
  );
}
