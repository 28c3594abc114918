import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isLoopbackHost } from "../../http/address.js";
import type { Clock } from "../../http/deadline.js";
import { refused } from "../../http/refuse.js";
import type { Secret } from "../../redact.js";
import { type ClientKey, clientAuth } from "../client/client-auth.js";
import type { Prover } from "../dpop/dpop.js";
import type { ClientRecord, Grant, TokenAnswer } from "../grant/grant.js";
import { isToken, type OAuthHttp, UNVERIFIED_ID_TOKEN } from "../http/http.js";
import { oauthError } from "./oauth-error.js";

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
  return withOAuthErrors(call, async () => {
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
  }).catch((error: unknown) => {
    throw asLoginFailure(error);
  });
}

/** A code is good for one request: where that one got no answer the code may be used up, and only a new login helps. */
function asLoginFailure(error: unknown): unknown {
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
  const { as, client, auth, options } = prepare({ ...call, lenient: true });
  const refreshToken = grant.tokens.refreshToken?.reveal();
  if (refreshToken === undefined) throw new TypeError("the grant has no refresh token");
  return withOAuthErrors(call, async () => {
    const response = await oauth.refreshTokenGrantRequest(as, client, auth, refreshToken, {
      ...options,
      additionalParameters: { resource: grant.resource },
    });
    return answerOf(call, response, await oauth.processRefreshTokenResponse(as, client, response));
  }, [grant.tokens.accessToken.reveal()]);
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
    lenient?: boolean;
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
    idToken: id_token ?? (answer[UNVERIFIED_ID_TOKEN] as string | undefined),
    expiresIn: expires_in,
    scope: typeof scope === "string" ? scope : undefined,
    at: issuedAt(date, call.clock.epoch()),
  };
}

/**
 * When the answer was made, on our clock. The issuer's `Date` is as good as ours where they nearly agree; where they do
 * not, one of them is wrong, and only ours will be looked at again.
 */
function issuedAt(date: number, now: number): number {
  return Number.isFinite(date) && Math.abs(date - now) < 5000 ? Math.min(date, now) : now;
}

/**
 * Runs a request of oauth4webapi and gives its failures our form.
 *
 * @param known secrets that the server knows without having been told them in this request
 */
export async function withOAuthErrors<T>(
  call: Pick<TokenCall, "tokenEndpoint" | "prover">,
  work: () => Promise<T>,
  known: readonly string[] = [],
): Promise<T> {
  try {
    return await withNonce(call, work);
  } catch (thrown) {
    throw oauthError(thrown, call.tokenEndpoint, known);
  }
}

/**
 * Makes a request once more where the server wants a nonce of its own in the proof (RFC 9449 section 8): it has not looked
 * at what else was sent. Once, since a server that wants another one each time would be asked for ever.
 */
async function withNonce<T>(
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
