import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { isLoopbackHost } from "../http/address.js";
import { type Clock, systemClock } from "../http/deadline.js";
import { refused } from "../http/refuse.js";
import { retryAfter } from "../http/retry.js";
import { escapeText, MASK, quote, Redactor, type Secret } from "../redact.js";
import { type ClientKey, clientAuth } from "./client-auth.js";
import type { Prover } from "./dpop.js";
import type { ClientRecord, Grant, TokenAnswer } from "./grant.js";
import { isToken, type OAuthHttp, secretsToldTo, UNJUDGED_ID_TOKEN } from "./http.js";

/** What a request to the token endpoint is made with. */
export interface TokenCall {
  /** How the request leaves. */
  http: OAuthHttp;
  /** Dates answers that have no date of their own. */
  clock: Pick<Clock, "epoch">;
  /** The issuer identifier. */
  issuer: string;
  /** Where the request goes. */
  tokenEndpoint: string;
  /** The client that asks. */
  client: ClientRecord;
  /** What a client of the method `private_key_jwt` signs with. */
  privateKey?: ClientKey | undefined;
  /** Proves the key that the tokens are to be bound to (RFC 9449); without it they are bearer tokens. */
  prover?: Prover | undefined;
  /** Ends the request. */
  signal: AbortSignal | undefined;
  /** Called right before a request leaves; what it throws keeps it from leaving. */
  beforeSend?: (() => void) | undefined;
}

/** The code of a finished authorization, with all that proves that it is ours. */
export interface CodeExchange {
  /** The callback's parameters as {@link checkCallback} passed them. */
  parameters: URLSearchParams;
  redirectUri: string;
  verifier: Secret;
  resource: string | undefined;
}

/** Trades a code for tokens (RFC 6749 section 4.1.3, RFC 7636 section 4.5, RFC 8707 section 2.2). Never repeated. */
export async function exchangeCode(call: TokenCall, code: CodeExchange): Promise<TokenAnswer> {
  const { as, client, auth, options } = prepare(call);
  return told(call, async () => {
    const response = await oauth.authorizationCodeGrantRequest(
      as,
      client,
      auth,
      code.parameters,
      code.redirectUri,
      code.verifier.reveal(),
      {
        ...options,
        ...(code.resource !== undefined && { additionalParameters: { resource: code.resource } }),
      },
    );
    return answerOf(call, response, await oauth.processAuthorizationCodeResponse(as, client, response));
  }, [code.verifier.reveal(), code.parameters.get("code") ?? ""]).catch((error: unknown) => {
    throw lostOnTheWay(error);
  });
}

/** A code is good for one request: where that one got no answer the code may be used up, and only a new sign-in helps. */
function lostOnTheWay(error: unknown): unknown {
  if (!isAgentAuthError(error) || (error.code !== "timeout" && error.code !== "connection_reset")) return error;
  return new AgentAuthError(error.code, `${error.message}; the sign-in cannot be continued`, {
    class: "auth",
    url: error.url,
    hint: "sign in again",
    cause: error,
  });
}

/** Asks for new tokens with a grant's refresh token (RFC 6749 section 6). Never repeated: whether to is the caller's to say. */
export async function refreshTokens(call: TokenCall, grant: Grant): Promise<TokenAnswer> {
  const { as, client, auth, options } = prepare({ ...call, forgiving: true });
  const refreshToken = grant.tokens.refreshToken?.reveal();
  if (refreshToken === undefined) throw new TypeError("the grant has no refresh token");
  return told(call, async () => {
    const response = await oauth.refreshTokenGrantRequest(as, client, auth, refreshToken, {
      ...options,
      additionalParameters: { resource: grant.resource },
    });
    return answerOf(call, response, await oauth.processRefreshTokenResponse(as, client, response));
  }, [refreshToken, grant.tokens.accessToken.reveal()]);
}

const CENTURY_S = 100 * 365 * 24 * 3600;
/** With what an issuer may sign an id token (RFC 7518 section 3.1, RFC 8037): by default oauth4webapi takes RS256 alone. */
const ID_TOKEN_ALGORITHMS = ["RS", "PS", "ES", "HS"]
  .flatMap((family) => ["256", "384", "512"].map((bits) => family + bits))
  .concat("EdDSA", "Ed25519");

/** What oauth4webapi wants to know of the server, the client and how requests leave. */
export function prepare(
  call: Pick<TokenCall, "http" | "issuer" | "client" | "privateKey" | "prover" | "signal" | "beforeSend"> & {
    tokenEndpoint?: string;
    /** Whether what is wrong beside the access token is left out, rather than the answer refused. */
    forgiving?: boolean;
  },
) {
  const { client } = call;
  const as: oauth.AuthorizationServer = {
    issuer: call.issuer,
    id_token_signing_alg_values_supported: ID_TOKEN_ALGORITHMS,
    ...(call.tokenEndpoint !== undefined && { token_endpoint: call.tokenEndpoint }),
  };
  return {
    as,
    // An id token is only ever shown to the issuer that gave it: what it says of the time decides nothing, and the clock
    // of this machine may be wrong.
    client: { client_id: client.clientId, [oauth.clockTolerance]: CENTURY_S } as oauth.Client,
    auth: clientAuth(client, call.privateKey),
    options: {
      [oauth.customFetch]: call.http.fetcher(call) as never,
      // Addresses were checked when they were read; http is left only between servers on this machine.
      [oauth.allowInsecureRequests]: isLoopbackHost(new URL(call.issuer).hostname),
    },
  };
}

export function answerOf(call: TokenCall, response: Response, answer: oauth.TokenEndpointResponse): TokenAnswer {
  const complain = (field: string, rule: string, value: unknown = undefined) =>
    refused("bad_token_answer", { field, value, from: call.tokenEndpoint, rule });
  // Never quoted: what is wrong with a token is no reason to show it.
  const token = (field: string, value: string | undefined) => {
    if (value !== undefined && !isToken(value)) {
      throw complain(
        field,
        "must consist of visible ASCII characters, at most 65536 (RFC 6749 appendix A)",
        "(not shown)",
      );
    }
    return value;
  };
  const { access_token, refresh_token, id_token, expires_in, scope, token_type } = answer;
  // A token that is not bound to the key would be another one than was asked for, and anybody's who finds it.
  const rule = call.prover ? 'must be "DPoP" (RFC 9449 section 5)' : 'must be "Bearer" (RFC 6749 section 5.1)';
  if (token_type !== (call.prover ? "dpop" : "bearer")) throw complain("token_type", rule, token_type);
  if (expires_in !== undefined && !(expires_in > 0))
    throw complain("expires_in", "must be a positive number of seconds", expires_in);
  const date = Date.parse(response.headers.get("date") ?? "");
  return {
    accessToken: token("access_token", access_token) ?? "",
    refreshToken: token("refresh_token", refresh_token),
    idToken: id_token ?? (answer[UNJUDGED_ID_TOKEN] as string | undefined),
    expiresIn: expires_in,
    scope: typeof scope === "string" ? scope : undefined,
    at: closeTo(date, call.clock.epoch()),
  };
}

/**
 * When the answer was made, on our clock. The issuer's `Date` is as good as ours where they nearly agree; where they do
 * not, one of them is wrong, and only ours will be looked at again.
 */
function closeTo(date: number, now: number): number {
  return Number.isFinite(date) && Math.abs(date - now) < 5000 ? Math.min(date, now) : now;
}

/**
 * Runs a request of oauth4webapi and gives its failures our form.
 *
 * @param secrets what was sent: a server that repeats it in its error must not make us show it
 */
export async function told<T>(
  call: Pick<TokenCall, "tokenEndpoint" | "prover"> & { client?: ClientRecord },
  work: () => Promise<T>,
  secrets: readonly string[] = [],
): Promise<T> {
  try {
    return await withNonce(call, work);
  } catch (thrown) {
    throw oauthError(thrown, call.tokenEndpoint, [...secrets, call.client?.clientSecret?.reveal() ?? ""]);
  }
}

/**
 * Makes a request once more where the server wants a nonce of its own in the proof (RFC 9449 section 8): it has not looked
 * at what else was sent. Once, since a server that wants another one each time would be asked for ever.
 */
export async function withNonce<T>(
  { prover, tokenEndpoint }: Pick<TokenCall, "prover" | "tokenEndpoint">,
  work: () => Promise<T>,
): Promise<T> {
  const before = prover?.nonces.get(tokenEndpoint);
  try {
    return await work();
  } catch (thrown) {
    const isAsked = thrown instanceof oauth.ResponseBodyError && thrown.error === "use_dpop_nonce";
    if (!isAsked || prover?.nonces.get(tokenEndpoint) === before) throw thrown;
    return work();
  }
}

const AUTH_ERRORS = new Set([
  "invalid_grant",
  "invalid_client",
  "unauthorized_client",
  "access_denied",
  "login_required",
  "interaction_required",
  "consent_required",
  "expired_token",
  "invalid_token",
]);

/** Codes that say of our own part what no issuer can know: an issuer's word must not pass for them. */
const OURS = new Set(["timeout", "connection_reset", "bad_json", "grant_not_saved", "lease_lost", "renewal_storm"]);
const MAX_CODE = 64;

/** An issuer's code as ours, if it is one. */
function codeOf(said: string): string {
  return said.length > MAX_CODE || OURS.has(said) ? "http_error" : said;
}

/** Our error for what oauth4webapi threw: the server's own verdict, or a refusal that names what was wrong. */
export function oauthError(thrown: unknown, url: string, secrets: readonly string[] = []): unknown {
  if (isAgentAuthError(thrown)) return thrown;
  if (thrown instanceof oauth.ResponseBodyError) {
    const { status } = thrown;
    const redactor = secretsToldTo(thrown.response);
    for (const secret of secrets) redactor.add(secret);
    const said = redactor.redact(thrown.error) === thrown.error ? thrown.error : MASK;
    const error = codeOf(said);
    const passing = status >= 500 || status === 429 || error === "temporarily_unavailable" || error === "server_error";
    return new AgentAuthError(error, `${url} answered ${quote(said, 60)}${saidBy(thrown, redactor)}`, {
      class: passing ? "unavailable" : AUTH_ERRORS.has(error) ? "auth" : "remote",
      status,
      url,
      retryAfter: passing ? askedToWait(thrown.response) : undefined,
      // A proof says when it was made.
      hint:
        error === "invalid_dpop_proof"
          ? "agentauth doctor tells whether the clock of this machine is right"
          : undefined,
      // Without the cause: it holds the whole answer, whatever that repeats.
    });
  }
  if (thrown instanceof oauth.WWWAuthenticateChallengeError) {
    // Without a word in the body it may come from a proxy: it says nothing of the client, and nothing of the grant.
    const { status } = thrown;
    const passing = status >= 500 || status === 429;
    const code = passing ? "server_error" : "http_error";
    return new AgentAuthError(code, `${url} answered HTTP ${status}`, {
      class: passing ? "unavailable" : "auth",
      status,
      url,
      retryAfter: passing ? askedToWait(thrown.response) : undefined,
    });
  }
  if (thrown instanceof oauth.AuthorizationResponseError) return authorizationError(thrown, url);
  if (thrown instanceof oauth.OperationProcessingError || thrown instanceof oauth.UnsupportedOperationError) {
    const response = thrown.cause instanceof Response ? thrown.cause : undefined;
    const status = response?.status;
    if (response !== undefined && status !== undefined && (status >= 500 || status === 429)) {
      return new AgentAuthError("server_error", `${url}: HTTP ${status}`, {
        class: "unavailable",
        status,
        url,
        retryAfter: askedToWait(response),
      });
    }
    // All else was read strictly before it came here.
    if ("code" in thrown && thrown.code === oauth.PARSE_ERROR) {
      return new AgentAuthError("bad_json", `${url}: the answer is empty`, { class: "unavailable", url });
    }
    const http = status !== undefined && status >= 400;
    return new AgentAuthError(
      http ? "http_error" : "bad_token_answer",
      `${url}: ${http ? `HTTP ${status}` : escapeText(secretsToldTo(response).redact(thrown.message))}`,
      {
        class: http ? "remote" : "refused",
        status,
        url,
        // Without the cause: it holds the answer, and with it whatever tokens it brought.
      },
    );
  }
  return thrown;
}

/** Seconds. */
function askedToWait({ headers }: Response): number | undefined {
  const wait = retryAfter(headers, systemClock.epoch());
  return wait === undefined ? undefined : Math.ceil(wait / 1000);
}

function authorizationError(thrown: oauth.AuthorizationResponseError, url: string): AgentAuthError {
  const { error } = thrown;
  return new AgentAuthError(error, `the sign-in ended with ${quote(error, 60)}${saidBy(thrown, new Redactor())}`, {
    class: error === "temporarily_unavailable" || error === "server_error" ? "unavailable" : "auth",
    url,
    // Without the cause: it holds the callback's parameters.
  });
}

/** The server's own words, harmless and cut. */
function saidBy({ error_description: description }: { error_description?: unknown }, redactor: Redactor): string {
  return typeof description === "string" ? `: ${escapeText(redactor.redact(description)).slice(0, 300)}` : "";
}
