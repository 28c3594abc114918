import type { JSONWebKeySet } from "jose";
import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isLoopbackHost, secureAddress } from "../../http/address.js";
import { classifyHost } from "../../http/address-class.js";
import { strictObject } from "../../http/buffered-response.js";
import type { Clock } from "../../http/deadline.js";
import { refusalError } from "../../http/refuse.js";
import { quote, type Secret } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import { type ClientKey, clientAuth, withOtherForms } from "../client/client-auth.js";
import { type OAuthHttp, type Prover, serverFailure, type TraceEntry } from "../http/http.js";
import { isToken, UNVERIFIED_ID_TOKEN } from "../http/normalize-response.js";
import { oauthError } from "../http/oauth-error.js";
import type { ClientRecord, Grant, TokenResponse } from "../model/grant.js";
import { NO_RESOURCE, resourceParameter } from "../model/resource.js";
import { splitScope } from "../model/scope.js";
import { ANY_TOKEN_TYPE, checkTokenType, readClaims, usableIdToken } from "./token-checks.js";

export interface IdTokenVerification {
  /** Reads the keys of the issuer, which are cached. */
  http: Pick<OAuthHttp, "document" | "forgetDocuments">;
  /** Unix milliseconds. */
  now: number;
}

/** How far the clocks of the issuer and of this machine may differ. */
const TOLERANCE_S = 60;

/**
 * Verifies the id token of a login at an identity provider (OpenID Connect Core section 3.1.3.7): its signature by a key
 * of the issuer, `iss`, `aud`, `azp`, `exp` and `sub`. The nonce was compared when the answer came.
 *
 * @returns the id token
 * @throws `AgentAuthError` `bad_token_answer`, `bad_server_metadata` for an issuer without keys, or a network error
 */
export async function verifyIdToken(grant: Grant, verification: IdTokenVerification): Promise<Secret> {
  const { issuer, endpoints, client, tokens } = grant;
  const { idToken } = tokens;
  const complain = (rule: string) =>
    refusalError("bad_token_answer", { field: "id_token", value: "(not shown)", from: endpoints.token, rule });
  if (idToken === undefined) throw complain("is required for a login at an identity provider");
  try {
    await verifyClaims(idToken.reveal(), grant, verification);
  } catch (error) {
    if (isAgentAuthError(error)) throw error;
    throw complain(`must be verifiable (OpenID Connect Core section 3.1.3.7): ${quote((error as Error).message)}`);
  }
  const { aud, azp, sub, iat } = readClaims(idToken.reveal())?.claims ?? {};
  if (typeof sub !== "string" || sub === "") throw complain("must name the user by a text (sub)");
  if (typeof iat !== "number" || iat > verification.now / 1000 + TOLERANCE_S)
    throw complain("must have been issued by now (iat)");
  const isForSeveral = Array.isArray(aud) && aud.length > 1;
  if ((azp !== undefined || isForSeveral) && azp !== client.clientId)
    throw complain(`must have been issued to the client ${quote(client.clientId)} (azp), and is of ${quote(issuer)}`);
  return idToken;
}

/** Verifies by jose, which is loaded for the first token. A missing key may be new: the keys are read again once. */
async function verifyClaims(token: string, grant: Grant, verification: IdTokenVerification): Promise<void> {
  const { issuer, client } = grant;
  const [{ createLocalJWKSet }, { jwtVerify }] = await Promise.all([
    import("jose/jwks/local"),
    import("jose/jwt/verify"),
  ]);
  const verify = async () =>
    jwtVerify(token, createLocalJWKSet(await fetchKeys(grant, verification)), {
      issuer,
      audience: client.clientId,
      requiredClaims: ["exp", "sub"],
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(verification.now),
    });
  await verify().catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== "ERR_JWKS_NO_MATCHING_KEY") throw error;
    verification.http.forgetDocuments();
    return verify();
  });
}

async function fetchKeys({ endpoints, issuer }: Grant, { http }: IdTokenVerification): Promise<JSONWebKeySet> {
  const { jwks: url } = endpoints;
  if (url === undefined) {
    const rule = "is required of an identity provider (OpenID Connect Discovery section 3)";
    throw refusalError("bad_server_metadata", { field: "jwks_uri", value: undefined, from: issuer, rule });
  }
  const reply = await http.document(url, undefined);
  const { status } = reply;
  if (status >= 500 || status === 429) throw serverFailure(url, status);
  const rule = `must be the address of a key set, and answered HTTP ${status} (RFC 7517 section 5)`;
  if (!reply.response.ok)
    throw refusalError("bad_server_metadata", { field: "jwks_uri", value: url, from: issuer, rule });
  return strictObject(reply) as unknown as JSONWebKeySet;
}

/** Whether an id token is valid for a while longer: half a minute, or half of a shorter life. */
export function isCurrent(idToken: string | undefined, now: number): boolean {
  const { exp, iat } = readClaims(idToken ?? "")?.claims ?? {};
  if (typeof exp !== "number") return false;
  const life = typeof iat === "number" ? exp - iat : Number.POSITIVE_INFINITY;
  return exp - now / 1000 > Math.min(30, life / 2);
}

export interface TokenCall {
  http: OAuthHttp;
  /** Dates responses without a `Date` header. */
  clock: Pick<Clock, "epoch">;
  issuer: string;
  tokenEndpoint: string;
  client: ClientRecord;
  privateKey?: ClientKey | undefined;
  /** Signs the DPoP proofs of the key that the tokens are bound to (RFC 9449); without it they are bearer tokens. */
  prover?: Prover | undefined;
  signal: AbortSignal | undefined;
  /** Called right before a request is sent; if it throws, nothing is sent. */
  beforeSend?: (() => void) | undefined;
  /** A token type that is used as a bearer token by the choice of the user. */
  acceptedTokenType?: string | undefined;
  requiresIdToken?: boolean | undefined;
  /** Called with what is ignored in the response. */
  trace?: ((entry: TraceEntry) => void) | undefined;
  /** Called with the client and its other authentication method, if the endpoint takes only that one. */
  onClient?: ((client: ClientRecord) => void) | undefined;
}

export interface CodeExchange {
  /** The callback's parameters as {@link checkCallback} passed them. */
  parameters: URLSearchParams;
  redirectUri: string;
  verifier: Secret;
  resource: string | undefined;
  /** The nonce of the authorization request, if it had one. */
  nonce?: string | undefined;
}

/** Exchanges a code for tokens (RFC 6749 section 4.1.3, RFC 7636 section 4.5, RFC 8707 section 2.2). */
export async function exchangeCode(call: TokenCall, code: CodeExchange): Promise<TokenResponse> {
  return sendAuthenticated(call, async ({ as, client, auth, options, processing }) => {
    const response = await oauth.authorizationCodeGrantRequest(
      as,
      client,
      auth,
      code.parameters,
      code.redirectUri,
      code.verifier.reveal(),
      { ...options, additionalParameters: resourceParameter(code.resource) },
    );
    const parsed = await oauth.processAuthorizationCodeResponse(as, client, response, processing);
    return readTokenResponse(call, response, parsed, code.nonce);
  }).catch((error: unknown) => {
    throw asLoginFailure(error);
  });
}

/** A code is valid for one request: without a response it may be used up, and only a new login helps. */
function asLoginFailure(error: unknown): unknown {
  if (!isAgentAuthError(error) || (error.code !== "timeout" && error.code !== "connection_reset")) return error;
  const message = `${error.message}; the login cannot be continued`;
  return new AgentAuthError(error.code, message, { class: "auth", url: error.url, hint: "log in again", cause: error });
}

/** What a refresh says beside the refresh token, as its issuer requires. */
export type RefreshForm = Pick<Grant, "refreshesWithScope" | "refreshesWithoutResource">;

/**
 * Requests new tokens with a grant's refresh token (RFC 6749 section 6): once more in another form if the issuer refuses a
 * parameter, or the lack of one, which says nothing against the token. Retries after other failures are up to the caller.
 */
export async function refreshTokens(
  call: TokenCall,
  grant: Grant,
): Promise<{ response: TokenResponse; form: RefreshForm }> {
  const { requestedScope = grant.tokens.scope } = grant;
  const refreshToken = grant.tokens.refreshToken?.reveal();
  if (refreshToken === undefined) throw new TypeError("the grant has no refresh token");
  const known = [grant.tokens.accessToken.reveal()];
  const send = ({ refreshesWithScope, refreshesWithoutResource }: RefreshForm) =>
    sendAuthenticated({ ...call, known }, async ({ as, client, auth, options, processing }) => {
      const response = await oauth.refreshTokenGrantRequest(as, client, auth, refreshToken, {
        ...options,
        additionalParameters: {
          ...(refreshesWithoutResource ? {} : resourceParameter(grant.resource)),
          ...(refreshesWithScope && requestedScope && { scope: requestedScope }),
        },
      });
      const parsed = await oauth.processRefreshTokenResponse(as, client, response, processing);
      return readTokenResponse(call, response, parsed);
    });
  const { refreshesWithScope, refreshesWithoutResource } = grant;
  let form: RefreshForm = { refreshesWithScope, refreshesWithoutResource };
  const tried = new Set<string>();
  for (;;) {
    try {
      const parsed = await send(form);
      // Entra ID may issue a token for something else where a refresh names no scopes: the next one names them.
      const isOther = isForOthers(parsed.scope, requestedScope);
      return { response: parsed, form: isOther ? { ...form, refreshesWithScope: true } : form };
    } catch (error) {
      tried.add(JSON.stringify(form));
      const next = formAfter(error, form, grant);
      if (next === undefined || tried.has(JSON.stringify(next))) throw error;
      form = next;
    }
  }
}

/** The form of a refresh that an issuer may take in place of the one that it refused; undefined for other errors. */
function formAfter(
  error: unknown,
  form: RefreshForm,
  { requestedScope, tokens, resource }: Grant,
): RefreshForm | undefined {
  if (!isAgentAuthError(error) || (error.class !== "remote" && error.class !== "auth")) return undefined;
  const { code, url = "" } = error;
  const text = error.message.replace(url, "");
  const isAboutResource = code === "invalid_target" || REFUSED_RESOURCE.test(text);
  const isAboutScope = code === "invalid_scope" || MISSING_SCOPE.test(text);
  if (isAboutResource && resource !== NO_RESOURCE && !form.refreshesWithoutResource)
    return { ...form, refreshesWithoutResource: true };
  if (isAboutScope && (requestedScope ?? tokens.scope))
    return { ...form, refreshesWithScope: form.refreshesWithScope ? undefined : true };
  return undefined;
}

/** An issuer that does not know the parameter, as "Unrecognized request parameter: resource". */
const REFUSED_RESOURCE =
  /\b(?:un\w+|invalid|extra|not (?:allowed|supported|permitted)|disallowed)\b[^.]*\bparameters?\b[^.]*\bresource\b|\bparameters?\b[^.]*\bresource\b[^.]*\b(?:un\w+|invalid|not (?:allowed|supported|permitted))\b/i;
/** AADSTS90009 of Entra ID: without scopes, the client is taken to request a token for itself. */
const MISSING_SCOPE = /\bAADSTS90009\b|\bscope\b[^.]*\b(?:required|missing)\b|\b(?:missing|requires?)\b[^.]*\bscope\b/i;

/** Whether a token is for none of the requested scopes, apart from those of OpenID Connect. */
function isForOthers(granted: string | undefined, requested: string | undefined): boolean {
  const requestedScopes = splitScope(requested).filter((scope) => !OF_OPENID.has(scope));
  const has = new Set(splitScope(granted));
  return granted !== undefined && requestedScopes.length > 0 && !requestedScopes.some((scope) => has.has(scope));
}

const OF_OPENID = new Set(["openid", "profile", "email", "offline_access"]);

type AuthenticatedCall = Pick<
  TokenCall,
  "http" | "issuer" | "tokenEndpoint" | "client" | "privateKey" | "prover" | "signal" | "beforeSend" | "onClient"
> & {
  /** Secrets that the server knows but that this request does not send. */
  known?: readonly string[];
};

/** Refusals of a request that say nothing against its code, token or assertion: the authentication was not understood. */
const AUTH_REFUSALS: readonly string[] = ["invalid_client", "invalid_request"];

/**
 * Sends a request in which the client authenticates by one method (RFC 6749 section 2.3). If the endpoint rejects the client
 * or the form of the request, sends it once more in each other form of the client's secret: only after such a response, so
 * that no request whose fate is unknown is repeated. Further refusals of this kind leave the error of the first.
 *
 * @param call `tokenEndpoint` is the endpoint of this request
 * @internal
 */
export async function sendAuthenticated<T>(
  call: AuthenticatedCall,
  send: (prepared: ReturnType<typeof prepareCall>) => Promise<T>,
): Promise<T> {
  const sendAs = (client: ClientRecord) => withOAuthErrors(call, () => send(prepareCall({ ...call, client })));
  try {
    return await sendAs(call.client);
  } catch (error) {
    for (const other of isAuthRefusal(error) ? withOtherForms(call.client) : []) {
      try {
        const result = await sendAs(other);
        call.onClient?.(other);
        return result;
      } catch (second) {
        if (isAuthRefusal(second)) continue;
        // Another OAuth error is about the rest of the request: the client was accepted.
        if (isAgentAuthError(second) && second.class !== "unavailable" && second.code !== "http_error")
          call.onClient?.(other);
        throw second;
      }
    }
    throw error;
  }
}

function isAuthRefusal(error: unknown): boolean {
  return isAgentAuthError(error) && AUTH_REFUSALS.includes(error.code);
}

/** The server, client, authentication and options in the form of oauth4webapi. */
function prepareCall(call: AuthenticatedCall) {
  const { client, issuer, tokenEndpoint } = call;
  const as: oauth.AuthorizationServer = { issuer, token_endpoint: tokenEndpoint };
  return {
    as,
    // oauth4webapi wants a name, which is sent only by the authentication of a client.
    client: { client_id: client.clientId || "none" } as oauth.Client,
    auth: clientAuth(client, call.privateKey),
    processing: { recognizedTokenTypes: ANY_TOKEN_TYPE },
    options: {
      [oauth.customFetch]: call.http.fetcher(call) as never,
      // The metadata checks allow http only between servers on this machine.
      [oauth.allowInsecureRequests]: isLoopbackHost(new URL(issuer).hostname),
    },
  };
}

/**
 * The tokens of a response whose form oauth4webapi has checked.
 *
 * @param nonce the nonce of the authorization request, if it had one
 * @internal
 */
export function readTokenResponse(
  call: TokenCall,
  response: Response,
  parsed: oauth.TokenEndpointResponse,
  nonce?: string,
): TokenResponse {
  const { access_token: accessToken, refresh_token, expires_in, scope, token_type } = parsed;
  const { tokenEndpoint, acceptedTokenType } = call;
  checkTokenType(token_type, { tokenEndpoint, acceptedTokenType, isBound: call.prover !== undefined });
  if (!isToken(accessToken)) {
    const rule = "must consist of visible ASCII characters, at most 65536 (RFC 6749 appendix A)";
    // An invalid token is not quoted either: it may be a secret.
    const broken = { field: "access_token", value: "(not shown)", from: tokenEndpoint, rule };
    throw refusalError("bad_token_answer", broken);
  }
  const at = issuedAt(Date.parse(response.headers.get("date") ?? ""), call.clock.epoch());
  return {
    accessToken,
    refreshToken: refresh_token,
    idToken: usableIdToken(parsed[UNVERIFIED_ID_TOKEN], { ...call, clientId: call.client.clientId, nonce }),
    expiresIn: expires_in ?? remainingLife(accessToken, at),
    scope: typeof scope === "string" ? scope : undefined,
    at,
  };
}

/**
 * The life of a JWT (RFC 9068) in seconds where its response omits it, as that of Salesforce does. The clock of the issuer
 * may not be ours, so what it says of the life counts where the two disagree.
 */
function remainingLife(token: string, at: number): number | undefined {
  const { exp, iat } = readClaims(token)?.claims ?? {};
  if (typeof exp !== "number") return undefined;
  const left = exp - at / 1000;
  const whole = typeof iat === "number" ? exp - iat : left;
  const life = left > 0 && left < whole ? left : whole;
  return life > 0 ? life : undefined;
}

/**
 * When the response was made, by our clock. The issuer's `Date` counts if both nearly agree; if not, one clock is
 * wrong, and all later comparisons use ours.
 */
function issuedAt(date: number, now: number): number {
  return Number.isFinite(date) && Math.abs(date - now) < 5000 ? Math.min(date, now) : now;
}

/**
 * Runs a request of oauth4webapi and converts its errors to `AgentAuthError`. Repeats it if the server requires a nonce in
 * the proof (RFC 9449 section 8), since it has not processed the rest. Only once: a server could require another nonce each
 * time.
 */
async function withOAuthErrors<T>(call: AuthenticatedCall, work: () => Promise<T>): Promise<T> {
  const { prover, tokenEndpoint, known } = call;
  const before = prover?.nonces.get(tokenEndpoint);
  try {
    return await work().catch((thrown: unknown) => {
      const isNonceRequired = thrown instanceof oauth.ResponseBodyError && thrown.error === "use_dpop_nonce";
      if (!isNonceRequired || prover?.nonces.get(tokenEndpoint) === before) throw thrown;
      return work();
    });
  } catch (thrown) {
    throw oauthError(thrown, tokenEndpoint, known);
  }
}

/**
 * Checks an address from the user that secrets are sent to: https, or http on a loopback host.
 *
 * @throws `AgentAuthError` `usage`
 */
export function checkEndpoint(address: string, what: string, remedy?: Remedy): void {
  const url = secureAddress(address);
  if (url !== undefined && classifyHost(url.hostname) !== "forbidden") return;
  const rule = url
    ? "must not be link-local, of a metadata service or reserved"
    : "must be https, or http to this machine";
  throw new AgentAuthError("usage", `${what}, ${quote(address)}, ${rule}`, { class: "usage", remedy });
}
