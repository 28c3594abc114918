import * as oauth from "oauth4webapi";
import { AgentAuthError, errorMessage, isAgentAuthError, usageError, withHint } from "../../errors.js";
import { refusalError } from "../../http/refuse.js";
import { quote, Secret } from "../../redact.js";
import { type PreRegisteredClient, preRegisteredClient, readClientSecret } from "../client/client-auth.js";
import { type BindingContext, bindUsedClient, fingerprintCredential, holdToIssuer } from "../client/issuer-binding.js";
import { type DiscoveryContext, discoverIssuer } from "../discovery/discovery.js";
import { acceptedTypeFor, grantEndpoints, overridesFor, resourceFor } from "../discovery/overrides.js";
import { type DpopPolicy, newProofKey, proverFor } from "../dpop/dpop.js";
import { LOGIN_HINT, loginRemedy } from "../grant/grant-requirements.js";
import type { Nonces, OAuthHttp } from "../http/http.js";
import { withResourceHint } from "../http/oauth-error.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { ClientRecord, Grant, GrantKey, GrantTokens, TokenResponse } from "../model/grant.js";
import { toGrantTokens } from "../model/grant.js";
import type { IdentityProvider, IdJagSubject, MachineGrant, MachineGrantOf } from "../model/machine-grant.js";
import { IDP_ACCOUNT } from "../model/machine-grant.js";
import { listsExchange } from "../model/metadata.js";
import { resourceParameter } from "../model/resource.js";
import { scopeFor, splitScope, unionScopes } from "../model/scope.js";
import { type ExchangedToken, exchangeTokens } from "../token/exchange.js";
import type { TokenCall } from "../token/token.js";
import { checkEndpoint, readTokenResponse, sendAuthenticated } from "../token/token.js";
import { readClaims } from "../token/token-checks.js";
import { findStrategy, machineFailure } from "./grant-strategies.js";

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
    const form = buildTokenParameters(parameters);
    const response = await oauth.clientCredentialsGrantRequest(as, client, auth, form, options);
    const parsed = await oauth.processClientCredentialsResponse(as, client, response, processing);
    return machineTokens(readTokenResponse(call, response, parsed), parameters);
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
  request: TokenParameters & { assertion: string | Secret; audience?: string | undefined },
): Promise<GrantTokens> {
  const { assertion, audience, ...parameters } = request;
  const text = checkAssertion(assertion, "the assertion");
  checkClaims(text, call, audience);
  return sendAuthenticated(call, async ({ as, client, auth, options, processing }) => {
    const body = { ...buildTokenParameters(parameters), assertion: text };
    const response = await oauth.genericTokenEndpointRequest(as, client, auth, JWT_BEARER, body, options);
    const parsed = await oauth.processGenericTokenEndpointResponse(as, client, response, processing);
    return machineTokens(readTokenResponse(call, response, parsed), parameters);
  });
}

export type IdJagRequest = TokenParameters &
  IdJagSubject & {
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
    ["aud", audience, " alone, the issuer that it was requested for"],
    ["iss", expected.iss, ", the identity provider that it was requested from"],
    ["sub", expected.sub, ", the user of the id token"],
    ["client_id", expected.clientId || undefined, ", the client that it was requested for"],
    ["resource", resource, " alone, the resource that it was requested for"],
  ];
  for (const [claim, wanted, whose] of rules) {
    const named = claims?.[claim];
    const mayBeList = claim === "aud" || claim === "resource";
    if (wanted !== undefined && (mayBeList ? alone(named) : named) !== wanted)
      throw complain(`${claim} of the ID-JAG`, named, `must be ${quote(wanted)}${whose}`);
  }
  return issued;
}

function buildTokenParameters({ resource, scope }: TokenParameters): Record<string, string> {
  return { ...(resource !== undefined && { resource }), ...(scope !== undefined && scope !== "" && { scope }) };
}

/** A machine requests a new token when its token expires, so that a refresh token or an id token is not stored. */
function machineTokens(response: TokenResponse, { scope }: TokenParameters): GrantTokens {
  return toGrantTokens({ ...response, refreshToken: undefined, idToken: undefined }, scope);
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
  const invalid = (code: "usage" | "invalid_grant", problem: string, hint: string) => {
    const message = `the assertion ${problem}, and is not sent (RFC 7523 section 3)`;
    return new AgentAuthError(code, message, { class: code === "usage" ? "usage" : "auth", hint, remedy });
  };
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
  throw usageError(`${what} ${found} (RFC 7519 section 3)`, hint);
}

export interface IssuerContext extends DiscoveryContext, BindingContext {
  dpop: DpopPolicy;
  nonces: Nonces;
}

export interface MachineContext {
  grant: MachineGrant;
  client: PreRegisteredClient;
  /**
   * Whether the client is our metadata document, which no issuer binds: the identity provider, which issues an assertion
   * for one issuer, then says which one gets it.
   */
  isDocument?: boolean;
  /** How the proof is got again: it is stored with the tokens, and the client's secret too. */
  recipe?: string | undefined;
  /** The dependencies of discovery; the exemptions of an earlier grant stay valid for its issuer. */
  loginContext(key: GrantKey, previous: Grant | undefined): IssuerContext;
  /** The HTTP client for an address that comes from the user alone. */
  httpTo(address: string): OAuthHttp;
}

export interface MachineRequest {
  key: GrantKey;
  /** The id token, if the grant has one. */
  proof: string | undefined;
  /** Scopes, separated by blanks. */
  scope: string | undefined;
  previousScope: string | undefined;
  challenge: BearerChallenge | undefined;
  /** The stored grant of an earlier request. */
  previous: Grant | undefined;
  signal: AbortSignal;
}

type GrantTarget = Omit<Grant, "tokens" | "signedInAt" | "refusals" | "generation" | "retired">;

/**
 * Requests a token: at the token endpoint of the earlier grant, else at the one that discovery finds. A rejection by the
 * issuer is final. After any other failure discovery runs again, since the server may have moved to another issuer.
 */
export async function requestMachineGrant(context: MachineContext, request: MachineRequest): Promise<Grant> {
  const { key, previous, challenge, signal } = request;
  const login = context.loginContext(key, previous);
  checkProof(context, login);
  const known = challenge === undefined ? await knownTarget(context, login, request) : undefined;
  if (known === undefined) return sendTokenRequest(context, login, await findTarget(context, login, request), request);
  try {
    return await sendTokenRequest(context, login, known, request);
  } catch (error) {
    if (!isAgentAuthError(error) || error.class === "auth" || error.class === "usage" || signal.aborted) throw error;
    const found = await findTarget(context, login, request).catch(rethrowIfChanged);
    if (found === undefined || (found.issuer === known.issuer && found.endpoints.token === known.endpoints.token))
      throw error;
    return sendTokenRequest(context, login, found, request);
  }
}

/** A grant without a proof requires client authentication (RFC 6749 section 4.4). */
function checkProof({ grant, client }: MachineContext, { mutualTls }: IssuerContext): void {
  const isProven = client.clientSecret !== undefined || client.privateKey !== undefined || mutualTls === true;
  if (findStrategy(grant).proof !== undefined || isProven) return;
  const message = `the client ${quote(client.clientId)} has neither a secret nor a key, and the grant ${grant.type} requires one`;
  const hint = "give its client.clientSecret or client.privateKey";
  const remedy = { action: "configure", option: "clientSecret", also: "privateKey" } as const;
  throw new AgentAuthError("usage", message, { class: "usage", hint, remedy });
}

/** A second failure in discovery adds nothing, unless the server now names another issuer. */
function rethrowIfChanged(error: unknown): undefined {
  if (isAgentAuthError(error, "issuer_changed")) throw error;
}

/** Checks that the client belongs to the issuer, before its secret, an assertion or an id token is sent. */
async function checkBinding(
  { grant, isDocument, client: { ...client } }: MachineContext,
  login: IssuerContext,
  { issuer, server }: Pick<GrantTarget, "issuer" | "server">,
  { key, previous, signal }: MachineRequest,
): Promise<void> {
  if (isDocument) return undefined;
  // A company's client may have one id at several issuers, and a binding holds one: that of the earlier token stays.
  if (grant.type === "id_jag" && grant.subject !== undefined && previous?.issuer === issuer) return undefined;
  // A workload without a client is bound by its account.
  client.clientId ||= key.account ?? "";
  const secret = fingerprintCredential(client);
  const assertion = findStrategy(grant).proof && "the assertion";
  const credential = secret && assertion ? `${secret} or ${assertion}` : (secret ?? assertion);
  return holdToIssuer(login, { client, issuer, server, credential, isInteractive: false, signal });
}

/** The source of the earlier token, if the client still authenticates in the same way and belongs to its issuer. */
async function knownTarget(
  context: MachineContext,
  login: IssuerContext,
  request: MachineRequest,
): Promise<GrantTarget | undefined> {
  const { client } = context;
  const { previous, scope } = request;
  if (previous === undefined) return undefined;
  const { authMethod } = previous.client;
  const byKey = authMethod === "private_key_jwt";
  const hasSameMethod =
    byKey === (client.privateKey !== undefined) &&
    (authMethod === "none") === (client.privateKey === undefined && client.clientSecret === undefined) &&
    (client.authMethod ?? authMethod) === authMethod;
  if (!hasSameMethod) return undefined;
  try {
    await checkBinding(context, login, previous, request);
  } catch (error) {
    // It was bound to another issuer in between.
    if (isAgentAuthError(error, "issuer_changed")) return undefined;
    throw error;
  }
  const known = { ...previous.client, clientSecret: readClientSecret(client) };
  const requestedScope = unionScopes(previous.requestedScope, scope);
  return { ...previous, client: known, requestedScope, acceptedTokenType: acceptedTypeFor(previous, login) };
}

async function findTarget(
  context: MachineContext,
  login: IssuerContext,
  request: MachineRequest,
): Promise<GrantTarget> {
  const { key, challenge, signal } = request;
  const found = await discoverIssuer(login, key.server, challenge, signal);
  const { issuer } = found;
  await checkBinding(context, login, { issuer: issuer.issuer, server: found.server }, request);
  const registered = preRegisteredClient({ ...login, client: context.client, server: issuer, isMachine: true });
  const client = context.isDocument ? { ...registered, source: "metadata-document" as const } : registered;
  // A machine requests a new token at any time, so that it needs no refresh token.
  const scope = scopeFor(found, request).scope.filter((one) => one !== "offline_access");
  return {
    profile: key.profile,
    server: found.server,
    account: key.account,
    resource: resourceFor(found, login),
    issuer: issuer.issuer,
    namedIssuer: issuer.namedIssuer,
    exchanges: listsExchange(issuer),
    endpoints: { ...grantEndpoints(issuer), endSession: undefined },
    client,
    requestedScope: scope.length > 0 ? scope.join(" ") : undefined,
    overrides: overridesFor(issuer, login),
    acceptedTokenType: acceptedTypeFor(issuer, login),
    proofKey: await newProofKey(login.dpop, found),
  };
}

async function sendTokenRequest(
  context: MachineContext,
  login: IssuerContext,
  target: GrantTarget,
  request: MachineRequest,
): Promise<Grant> {
  const { issuer, endpoints, resource, requestedScope: scope, acceptedTokenType } = target;
  let { client } = target;
  const { signal } = request;
  const { privateKey } = context.client;
  const prover = proverFor(target, login.nonces);
  const party = { issuer, tokenEndpoint: endpoints.token, client, privateKey, acceptedTokenType };
  const onClient = (accepted: ClientRecord) => {
    client = accepted;
  };
  const call = { ...login, ...party, prover, signal, onClient };
  const entry = { step: "token", method: "POST", url: endpoints.token } as const;
  try {
    const tokens = await tokensFor(context, call, { ...resourceParameter(resource), scope }, request);
    login.trace({ ...entry, used: true, why: context.grant.type });
    // Without a recipe the caller passes the secret on every use.
    const { recipe } = context;
    const stored: ClientRecord = recipe === undefined ? { ...client, clientSecret: undefined } : client;
    const kept = recipe === undefined ? {} : { recipe: new Secret(recipe) };
    const fresh = { signedInAt: tokens.obtainedAt, refusals: [], generation: 0, retired: undefined };
    const created = { ...target, ...kept, client: stored, tokens, ...fresh };
    await bindUsedClient(login, created);
    return created;
  } catch (thrown) {
    const error = withResourceHint(machineFailure(thrown, { grant: context.grant, client }), resource);
    login.trace({ ...entry, used: false, why: errorMessage(error) });
    throw error;
  }
}

/** Requests tokens by the grant; its proof is got for this request. */
async function tokensFor(
  { grant, httpTo }: MachineContext,
  call: TokenCall & Pick<IssuerContext, "profile">,
  parameters: TokenParameters,
  { proof: idToken = "" }: MachineRequest,
): Promise<GrantTokens> {
  if (grant.type === "client_credentials") return clientCredentialsTokens(call, parameters);
  const { issuer, tokenEndpoint, signal } = call;
  if (grant.type === "jwt_bearer") {
    const { audience } = grant;
    const request = { audience: audience ?? issuer, issuer, tokenEndpoint, resource: parameters.resource, signal };
    return jwtBearerTokens(call, { ...parameters, assertion: await grant.assertion(request), audience });
  }
  const subject = (await grant.subject?.()) ?? { idToken };
  const { iss, sub } = readClaims(idToken)?.claims ?? {};
  const expected = { iss: grant.idp.issuer ?? iss, sub, clientId: call.client.clientId };
  const wanted = { ...parameters, ...subject, audience: issuer, expected };
  const issued = await idJagAssertion(callTo(grant.idp, call, httpTo), wanted).catch((error: unknown) => {
    throw providerFailure(error, grant, { ...wanted, profile: call.profile });
  });
  const scope = issued.scope === undefined ? parameters.scope : commonScopes(parameters.scope, issued.scope);
  return jwtBearerTokens(call, { ...parameters, scope, assertion: issued.value });
}

/** The requested scopes that a policy allows: an issuer refuses a request for more. None leaves the choice to the issuer. */
function commonScopes(requested: string | undefined, allowed: string): string | undefined {
  const all = splitScope(allowed);
  return unionScopes(...splitScope(requested).filter((one) => all.includes(one)));
}

/** Responses of an identity provider that its policy decides (RFC 6749 section 5.2, RFC 8693 section 2.2.2). */
const POLICY_CODES: readonly string[] = ["access_denied", "invalid_target", "invalid_scope", "unauthorized_client"];
/** Responses that a new login of the user at the identity provider can change. */
const LOGIN_CODES: readonly string[] = ["invalid_grant", "login_required", "interaction_required", "consent_required"];

/** The error of an identity provider that issues no assertion, with what to ask whom. */
function providerFailure(
  error: unknown,
  { idp, subject }: MachineGrantOf<"id_jag">,
  { audience, resource, scope, profile }: TokenParameters & { audience: string; profile: string },
): unknown {
  if (!isAgentAuthError(error)) return error;
  const { code, message, status, url } = error;
  const name = idp.issuer ?? new URL(idp.tokenEndpoint).origin;
  if (POLICY_CODES.includes(code)) {
    const target = `${quote(audience)}${resource === undefined ? "" : ` (resource ${quote(resource)})`}`;
    const scopes = scope === undefined || scope === "" ? "" : ` with the scopes ${quote(scope)}`;
    const what = `the policy of ${quote(name)} allows this user no access to ${target}${scopes}: ${message}`;
    const hint = `ask the administrators of ${quote(name)} to allow its client ${quote(idp.clientId)} assertions for ${target}${scopes}`;
    return new AgentAuthError("assertion_denied", what, { class: "auth", status, url, hint, cause: error });
  }
  if (subject === undefined || !LOGIN_CODES.includes(code)) return error;
  return withHint(error, LOGIN_HINT, loginRemedy({ profile, server: name, account: IDP_ACCOUNT }));
}

/** The request to the identity provider, where another client is registered. */
function callTo(idp: IdentityProvider, call: TokenCall, httpTo: MachineContext["httpTo"]): TokenCall {
  const { tokenEndpoint } = idp;
  const remedy = { action: "configure", option: "idpTokenEndpoint" } as const;
  checkEndpoint(tokenEndpoint, "the token endpoint of the identity provider", remedy);
  const issuer = idp.issuer ?? new URL(tokenEndpoint).origin;
  const { clock, signal } = call;
  const client = preRegisteredClient({ client: idp, server: { issuer } });
  return { clock, signal, http: httpTo(tokenEndpoint), issuer, tokenEndpoint, client };
}
