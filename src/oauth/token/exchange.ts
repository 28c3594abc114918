import * as oauth from "oauth4webapi";
import { refused } from "../../http/refuse.js";
import { MASK, Secret } from "../../redact.js";
import { tokensOf } from "../grant/grant.js";
import { readClaims } from "./jwt-claims.js";
import { answerOf, prepare, type TokenCall, withOAuthErrors } from "./token.js";

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TYPE = "urn:ietf:params:oauth:token-type:";
const ACCESS_TOKEN = `${TYPE}access_token`;
/** What an issuer may choose where nothing is asked for: what can be shown to the audience as a token. */
const USABLE = [ACCESS_TOKEN, `${TYPE}jwt`];

/** A token exchange (RFC 8693 section 2.1). Types are the URIs of its section 3. */
export interface ExchangeRequest {
  /** In whose name. */
  subjectToken: string | Secret;
  /** Default: an access token. */
  subjectTokenType?: string | undefined;
  /** Who acts for the subject. */
  actorToken?: string | Secret | undefined;
  /** Default, with an actor token: an access token. */
  actorTokenType?: string | undefined;
  /** For whom, by names that the issuer knows. */
  audience?: string | readonly string[] | undefined;
  /** For whom, by addresses. */
  resource?: string | readonly string[] | undefined;
  /** Scopes, separated by blanks. Default: the issuer's choice. */
  scope?: string | undefined;
  /** Default: the issuer's choice among access tokens and JWTs. */
  requestedTokenType?: string | undefined;
}

/** A token that another one was exchanged for. It does not print: only {@link ExchangedToken.value} gives it. */
export class ExchangedToken {
  readonly #value: string;
  /** What it is: a URI of RFC 8693 section 3. */
  readonly issuedTokenType: string;
  /** How it is used: `N_A` where it is no access token. */
  readonly tokenType: "Bearer" | "N_A";
  /** When it ends; undefined when the issuer did not say. */
  readonly expiresAt: Date | undefined;
  /** The scopes granted; undefined when neither asked for nor told. */
  readonly scope: string | undefined;
  /** Who issued it. */
  readonly issuer: string;

  constructor(value: string, about: Omit<ExchangedToken, "value" | "toString">) {
    this.#value = value;
    this.issuedTokenType = about.issuedTokenType;
    this.tokenType = about.tokenType;
    this.expiresAt = about.expiresAt;
    this.scope = about.scope;
    this.issuer = about.issuer;
  }

  /** The token itself. */
  get value(): string {
    return this.#value;
  }

  /** A mask: a token that slips into a text is not shown. */
  toString(): string {
    return MASK;
  }
}

/**
 * Exchanges a token for another one (RFC 8693). Never repeated.
 *
 * @throws `AgentAuthError` with the issuer's own code such as `invalid_target`, `bad_token_answer` where the answer is not
 * what was asked for, or a network error
 */
export async function exchangeTokens(call: TokenCall, request: ExchangeRequest): Promise<ExchangedToken> {
  const { as, client, auth, options } = prepare(call);
  const parameters = parametersOf(request);
  return withOAuthErrors(call, async () => {
    const response = await oauth.genericTokenEndpointRequest(as, client, auth, TOKEN_EXCHANGE, parameters, options);
    const answer = await oauth.processGenericTokenEndpointResponse(as, client, response, {
      recognizedTokenTypes: { n_a: () => {} },
    });
    const issuedTokenType = checkType(call, request, answer);
    const isAccess = answer.token_type !== "n_a";
    const kept = answerOf(call, response, isAccess ? answer : { ...answer, token_type: "bearer" });
    const { expiresAt, scope } = tokensOf(kept, request.scope);
    checkAudience(call, request, kept.accessToken);
    return new ExchangedToken(kept.accessToken, {
      issuedTokenType,
      tokenType: isAccess ? "Bearer" : "N_A",
      expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt),
      scope,
      issuer: call.issuer,
    });
  });
}

const reveal = (token: string | Secret) => (token instanceof Secret ? token.reveal() : token);
const listOf = (value: string | readonly string[] | undefined): readonly string[] =>
  typeof value === "string" ? [value] : (value ?? []);

function parametersOf(request: ExchangeRequest): URLSearchParams {
  const { subjectToken, subjectTokenType, actorToken, actorTokenType, scope, requestedTokenType } = request;
  if (actorTokenType !== undefined && actorToken === undefined)
    throw new TypeError("actorTokenType says of what type an actorToken is, and there is none");
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
  for (const audience of listOf(request.audience)) parameters.append("audience", audience);
  for (const resource of listOf(request.resource)) parameters.append("resource", resource);
  return parameters;
}

/** A token of another kind than was asked for must not be handed on as if it were that one (RFC 8693 section 2.2.1). */
function checkType(call: TokenCall, request: ExchangeRequest, answer: oauth.TokenEndpointResponse): string {
  const complain = (field: string, value: unknown, rule: string) =>
    refused("bad_token_answer", { field, value, from: call.tokenEndpoint, rule });
  const issued = answer["issued_token_type"];
  const wanted = request.requestedTokenType === undefined ? USABLE : [request.requestedTokenType];
  if (typeof issued !== "string" || !wanted.includes(issued)) {
    throw complain("issued_token_type", issued, `must be ${wanted.join(" or ")} (RFC 8693 section 2.2.1)`);
  }
  if (answer.token_type === "n_a" && issued === ACCESS_TOKEN)
    throw complain("token_type", "N_A", 'must be "Bearer" for an access token (RFC 8693 section 2.2.1)');
  return issued;
}

/** Where the token says for whom it is, one of those must be among them. A slash at the end makes no other address. */
function checkAudience(call: TokenCall, request: ExchangeRequest, token: string): void {
  const named = readClaims(token)?.claims["aud"];
  const bare = (name: string) => name.replace(/\/$/, "");
  const asked = [...listOf(request.audience), ...listOf(request.resource)].map(bare);
  const isAsked = (one: unknown) => typeof one === "string" && asked.includes(bare(one));
  if (named === undefined || asked.length === 0 || [named].flat().some(isAsked)) return;
  throw refused("bad_token_answer", {
    field: "aud of the token",
    value: named,
    from: call.tokenEndpoint,
    rule: "must name an audience or resource that was asked for (RFC 8693 section 2.1)",
  });
}
