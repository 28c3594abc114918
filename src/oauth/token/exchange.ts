import * as oauth from "oauth4webapi";
import { refusalError } from "../../http/refuse.js";
import { SECRET_MASK, Secret } from "../../redact.js";
import { toGrantTokens } from "../model/grant.js";
import { TOKEN_EXCHANGE } from "../model/metadata.js";
import { readTokenResponse, sendAuthenticated, type TokenCall } from "./token.js";
import { readClaims } from "./token-checks.js";

const TYPE = "urn:ietf:params:oauth:token-type:";
const ACCESS_TOKEN = `${TYPE}access_token`;
/** Types that an issuer may choose by default: those that the audience can accept as a token. */
const USABLE = [ACCESS_TOKEN, `${TYPE}jwt`];

/** A token exchange (RFC 8693 section 2.1). Types are the URIs of its section 3. */
export interface ExchangeRequest {
  subjectToken: string | Secret;
  /** Default: an access token. */
  subjectTokenType?: string | undefined;
  /** The token of the party that acts for the subject. */
  actorToken?: string | Secret | undefined;
  /** Default, with an actor token: an access token. */
  actorTokenType?: string | undefined;
  /** Logical names of the target services. */
  audience?: string | readonly string[] | undefined;
  /** Addresses of the target services. */
  resource?: string | readonly string[] | undefined;
  /** Scopes, separated by blanks. Default: the issuer's choice. */
  scope?: string | undefined;
  /** Default: the issuer's choice among access tokens and JWTs. */
  requestedTokenType?: string | undefined;
}

/** The result of a token exchange. Printing it shows a mask: only {@link ExchangedToken.value} returns the token. */
export class ExchangedToken {
  readonly #value: string;
  /** Its type: a URI of RFC 8693 section 3. */
  readonly issuedTokenType: string;
  /** How to use it: `N_A` if it is not an access token. */
  readonly tokenType: "Bearer" | "N_A";
  /** When it expires; undefined if the issuer did not say. */
  readonly expiresAt: Date | undefined;
  /** The scopes granted; undefined if neither requested nor returned. */
  readonly scope: string | undefined;
  /** Who issued it. */
  readonly issuer: string;

  constructor(value: string, details: Omit<ExchangedToken, "value" | "toString">) {
    this.#value = value;
    this.issuedTokenType = details.issuedTokenType;
    this.tokenType = details.tokenType;
    this.expiresAt = details.expiresAt;
    this.scope = details.scope;
    this.issuer = details.issuer;
  }

  /** The token itself. */
  get value(): string {
    return this.#value;
  }

  /** A mask, so that a token in a text is not shown. */
  toString(): string {
    return SECRET_MASK;
  }
}

/**
 * Exchanges a token for another one (RFC 8693).
 *
 * @throws `AgentAuthError` with the issuer's own code such as `invalid_target`, `bad_token_answer` if the response is
 * not what was requested, or a network error
 */
export async function exchangeTokens(call: TokenCall, request: ExchangeRequest): Promise<ExchangedToken> {
  const parameters = buildExchangeParameters(request);
  return sendAuthenticated(call, async ({ as, client, auth, options, processing }) => {
    const response = await oauth.genericTokenEndpointRequest(as, client, auth, TOKEN_EXCHANGE, parameters, options);
    const parsed = await oauth.processGenericTokenEndpointResponse(as, client, response, processing);
    const issuedTokenType = checkType(call, request, parsed);
    const isAccess = parsed.token_type !== "n_a";
    const tokens = readTokenResponse(call, response, isAccess ? parsed : { ...parsed, token_type: "bearer" });
    const { expiresAt, scope } = toGrantTokens(tokens, request.scope);
    checkTokenAudience(call, request, tokens.accessToken);
    const expiry = expiresAt === undefined ? undefined : new Date(expiresAt);
    const use = { issuedTokenType, tokenType: isAccess ? "Bearer" : "N_A", issuer: call.issuer } as const;
    return new ExchangedToken(tokens.accessToken, { ...use, expiresAt: expiry, scope });
  });
}

const reveal = (token: string | Secret) => (token instanceof Secret ? token.reveal() : token);
const toList = (value: string | readonly string[] | undefined): readonly string[] =>
  typeof value === "string" ? [value] : (value ?? []);

function buildExchangeParameters(request: ExchangeRequest): URLSearchParams {
  const { subjectToken, subjectTokenType, actorToken, actorTokenType, scope, requestedTokenType } = request;
  if (actorTokenType !== undefined && actorToken === undefined)
    throw new TypeError("actorTokenType requires actorToken");
  const parameters = new URLSearchParams({
    subject_token: reveal(subjectToken),
    subject_token_type: subjectTokenType ?? ACCESS_TOKEN,
    ...(actorToken !== undefined && {
      actor_token: reveal(actorToken),
      actor_token_type: actorTokenType ?? ACCESS_TOKEN,
    }),
    ...(scope !== undefined && { scope }),
    ...(requestedTokenType !== undefined && { requested_token_type: requestedTokenType }),
  });
  for (const audience of toList(request.audience)) parameters.append("audience", audience);
  for (const resource of toList(request.resource)) parameters.append("resource", resource);
  return parameters;
}

/** Rejects a token of another type than requested, which the caller would mistake for it (RFC 8693 section 2.2.1). */
function checkType(call: TokenCall, request: ExchangeRequest, parsed: oauth.TokenEndpointResponse): string {
  const complain = (field: string, value: unknown, rule: string) =>
    refusalError("bad_token_answer", { field, value, from: call.tokenEndpoint, rule });
  const issued = parsed["issued_token_type"];
  const wanted = request.requestedTokenType === undefined ? USABLE : [request.requestedTokenType];
  if (typeof issued !== "string" || !wanted.includes(issued))
    throw complain("issued_token_type", issued, `must be ${wanted.join(" or ")} (RFC 8693 section 2.2.1)`);
  if (parsed.token_type === "n_a" && issued === ACCESS_TOKEN)
    throw complain("token_type", "N_A", 'must be "Bearer" for an access token (RFC 8693 section 2.2.1)');
  return issued;
}

/** Rejects a token whose `aud` names no requested audience or resource. A slash at the end is ignored. */
function checkTokenAudience(call: TokenCall, request: ExchangeRequest, token: string): void {
  const named = readClaims(token)?.claims["aud"];
  const withoutSlash = (name: string) => name.replace(/\/$/, "");
  const requested = [...toList(request.audience), ...toList(request.resource)].map(withoutSlash);
  const isRequested = (one: unknown) => typeof one === "string" && requested.includes(withoutSlash(one));
  if (named === undefined || requested.length === 0 || [named].flat().some(isRequested)) return;
  const rule = "must name a requested audience or resource (RFC 8693 section 2.1)";
  throw refusalError("bad_token_answer", { field: "aud of the token", value: named, from: call.tokenEndpoint, rule });
}
