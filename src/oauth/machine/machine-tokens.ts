import * as oauth from "oauth4webapi";
import { AgentAuthError } from "../../errors.js";
import { refusalError } from "../../http/refuse.js";
import { quote, Secret } from "../../redact.js";
import { type GrantTokens, type TokenResponse, tokensOf } from "../model/grant.js";
import type { IdJagSubject } from "../model/machine-grant.js";
import { type ExchangedToken, exchangeTokens } from "../token/exchange.js";
import { answerOf, sendAuthenticated, type TokenCall } from "../token/token.js";
import { readClaims } from "../token/token-checks.js";

/** The resource and the scopes of a token request. */
export interface TokenParameters {
  /** The protected resource (RFC 8707). */
  resource?: string | undefined;
  /** Scopes, separated by blanks. */
  scope?: string | undefined;
}

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** The `typ` of an identity assertion authorization grant: one server asserts a user's identity to another. */
const ID_JAG_TYP = "oauth-id-jag+jwt";
const TOKEN_TYPE = "urn:ietf:params:oauth:token-type:";
const ID_JAG = `${TOKEN_TYPE}id-jag`;

/**
 * Requests a token for the client itself (RFC 6749 section 4.4).
 *
 * @throws `AgentAuthError` with the issuer's own code, `bad_token_answer`, or a network error
 */
export async function clientCredentialsTokens(call: TokenCall, parameters: TokenParameters = {}): Promise<GrantTokens> {
  return sendAuthenticated(call, async ({ as, client, auth, options, processing }) => {
    const response = await oauth.clientCredentialsGrantRequest(
      as,
      client,
      auth,
      buildTokenParameters(parameters),
      options,
    );
    const answer = await oauth.processClientCredentialsResponse(as, client, response, processing);
    return machineTokens(answerOf(call, response, answer), parameters);
  });
}

/**
 * Requests a token with an assertion that the issuer trusts (RFC 7523 section 2.1).
 *
 * @param call its client may have an empty `clientId`: the issuer then knows the workload by the assertion alone
 * @throws `AgentAuthError` `usage` for an assertion that is no JWT or lacks a claim, `invalid_grant` for one that has
 * expired, `wrong_audience` for one with another audience than `audience` (default: the issuer or its token endpoint),
 * the issuer's own code such as `invalid_grant`, `bad_token_answer`, or a network error
 */
export async function jwtBearerTokens(
  call: TokenCall,
  {
    assertion,
    audience,
    ...parameters
  }: TokenParameters & { assertion: string | Secret; audience?: string | undefined },
): Promise<GrantTokens> {
  const text = checkAssertion(assertion, "the assertion");
  checkClaims(text, call, audience);
  return sendAuthenticated(call, async ({ as, client, auth, options, processing }) => {
    const body = { ...buildTokenParameters(parameters), assertion: text };
    const response = await oauth.genericTokenEndpointRequest(as, client, auth, JWT_BEARER, body, options);
    const answer = await oauth.processGenericTokenEndpointResponse(as, client, response, processing);
    return machineTokens(answerOf(call, response, answer), parameters);
  });
}

export type IdJagRequest = TokenParameters &
  IdJagSubject & {
    /** The issuer that the assertion is for. */
    audience: string;
    /** Who asserts whom, and for which client of the audience. */
    expected: {
      /** The identity provider; undefined if neither the caller nor an id token names it. */
      iss: unknown;
      /** The user, as the id token names the user. */
      sub: unknown;
      /** Empty for an issuer that knows no client. */
      clientId: string;
    };
  };

/**
 * Requests an assertion of a user's identity for another issuer (RFC 8693, requested token type `id-jag`): the first leg
 * of enterprise-managed authorization. The second is {@link jwtBearerTokens} at that issuer.
 *
 * @param call to the identity provider
 * @throws as {@link jwtBearerTokens}
 */
export async function idJagAssertion(call: TokenCall, request: IdJagRequest): Promise<ExchangedToken> {
  const { audience, resource, scope, expected } = request;
  const subject =
    "refreshToken" in request
      ? { subjectToken: request.refreshToken, subjectTokenType: `${TOKEN_TYPE}refresh_token` }
      : { subjectToken: checkAssertion(request.idToken, "the id token"), subjectTokenType: `${TOKEN_TYPE}id_token` };
  const exchange = { ...subject, requestedTokenType: ID_JAG, audience, resource, scope };
  const issued = await exchangeTokens(call, exchange);
  const { header, claims } = readClaims(issued.value) ?? {};
  const complain = (field: string, value: unknown, rule: string) =>
    refusalError("bad_token_answer", { field, value, from: call.tokenEndpoint, rule });
  if (header?.["typ"] !== ID_JAG_TYP) throw complain("typ of the ID-JAG", header?.["typ"], `must be "${ID_JAG_TYP}"`);
  // Any other issuer in the audience could use the assertion in our place.
  const alone = (value: unknown) => (Array.isArray(value) && value.length === 1 ? value[0] : value);
  const rules: [claim: string, wanted: unknown, whose: string][] = [
    ["aud", audience, " alone, the issuer that it was asked for"],
    ["iss", expected.iss, ", the identity provider that was asked"],
    ["sub", expected.sub, ", the user of the id token"],
    ["client_id", expected.clientId || undefined, ", the client that it was asked for"],
    ["resource", resource, " alone, the resource that it was asked for"],
  ];
  for (const [claim, wanted, whose] of rules) {
    const named = claims?.[claim];
    const mayBeList = claim === "aud" || claim === "resource";
    if (wanted !== undefined && (mayBeList ? alone(named) : named) !== wanted)
      throw complain(`${claim} of the ID-JAG`, named, `must be ${quote(wanted)}${whose}`);
  }
  return issued;
}

/** The form parameters that every grant has. */
function buildTokenParameters({ resource, scope }: TokenParameters): Record<string, string> {
  return {
    ...(resource !== undefined && { resource }),
    ...(scope !== undefined && scope !== "" && { scope }),
  };
}

/** A machine requests a new token when its token expires, so that a refresh token or an id token is not stored. */
function machineTokens(response: TokenResponse, { scope }: TokenParameters): GrantTokens {
  return tokensOf({ ...response, refreshToken: undefined, idToken: undefined }, scope);
}

/** An assertion that has expired by our clock for longer than this is not sent: clocks differ. */
const CLOCK_SKEW_MS = 60_000;

/**
 * An assertion that the issuer must refuse is not sent, nor one with another audience, who could use it (RFC 7523
 * section 3).
 *
 * @throws `AgentAuthError` `usage`, `invalid_grant` or `wrong_audience`
 */
function checkClaims(assertion: string, { issuer, tokenEndpoint, clock }: TokenCall, wanted?: string): void {
  const { iss, exp, aud } = readClaims(assertion)?.claims ?? {};
  const remedy = { action: "configure", option: "assertion" } as const;
  const invalid = (code: "usage" | "invalid_grant", problem: string, hint: string) =>
    new AgentAuthError(code, `the assertion ${problem}, and is not sent (RFC 7523 section 3)`, {
      class: code === "usage" ? "usage" : "auth",
      hint,
      remedy,
    });
  if (typeof iss !== "string" || iss === "")
    throw invalid("usage", "does not name its issuer (iss)", "use an assertion that names the platform that signed it");
  if (typeof exp !== "number") throw invalid("usage", "has no expiry (exp)", "use an assertion that expires");
  if (exp * 1000 <= clock.epoch() - CLOCK_SKEW_MS) {
    const since = Number.isFinite(new Date(exp * 1000).getTime()) ? new Date(exp * 1000).toISOString() : quote(exp);
    throw invalid("invalid_grant", `expired at ${since} (exp)`, "have the platform issue a current one");
  }
  // Each of several could use it at the others.
  const named = Array.isArray(aud) && aud.length === 1 ? (aud[0] as unknown) : aud;
  if (wanted === undefined ? named === issuer || named === tokenEndpoint : named === wanted) return;
  const shown = aud === undefined ? "has no aud" : `is for ${quote(aud)} (aud)`;
  const rule =
    wanted === undefined
      ? `its aud must be the issuer ${quote(issuer)} or its token endpoint ${quote(tokenEndpoint)} alone`
      : `its aud must be ${quote(wanted)} alone`;
  throw new AgentAuthError("wrong_audience", `the assertion ${shown}, and is not sent: ${rule} (RFC 7523 section 3)`, {
    class: "refused",
    hint: "have it issued for this issuer; if it is for another one, check the MCP server and the option issuer",
    remedy: { action: "configure", option: "issuer" },
  });
}

/** Checks the shape of a JWT. The message never quotes it: it is a secret. */
function checkAssertion(assertion: string | Secret, what: string): string {
  const text = (assertion instanceof Secret ? assertion.reveal() : assertion).trim();
  if (/^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)) return text;
  const found = text === "" ? "is empty" : "is no JWT: three parts of base64url, with dots between them";
  const hint = "give it as it was issued, without quotes and without a scheme before it";
  throw new AgentAuthError("usage", `${what} ${found} (RFC 7519 section 3)`, { class: "usage", hint });
}
