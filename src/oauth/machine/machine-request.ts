import { AgentAuthError, isAgentAuthError, messageOf, withHint } from "../../errors.js";
import { quote, Secret } from "../../redact.js";
import { clientSecretOf, type PreRegisteredClient, preRegisteredClient } from "../client/client-auth.js";
import { type BindingContext, bindUsedClient, credentialOf, holdToIssuer } from "../client/issuer-binding.js";
import { discoverIssuer } from "../discovery/discovery.js";
import { acceptedTypeFor, overridesFor, resourceFor } from "../discovery/overrides.js";
import type { DiscoveryContext } from "../discovery/server-examination.js";
import { type DpopPolicy, newProofKey, proverFor } from "../dpop/dpop.js";
import { LOGIN_HINT, loginRemedy } from "../grant/grant-requirements.js";
import type { Nonces, OAuthHttp } from "../http/http.js";
import { withResourceHint } from "../http/oauth-error.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { ClientRecord, Grant, GrantKey, GrantTokens } from "../model/grant.js";
import { IDP_ACCOUNT, type IdentityProvider, type MachineGrant, type MachineGrantOf } from "../model/machine-grant.js";
import { listsExchange } from "../model/metadata.js";
import { resourceParameter } from "../model/resource.js";
import { scopeFor, splitScope, unionScopes } from "../model/scope.js";
import { checkEndpoint, recordOf, type TokenCall } from "../token/token.js";
import { readClaims } from "../token/token-checks.js";
import { machineFailure, strategyOf, type TokenSteps } from "./grant-strategies.js";
import { clientCredentialsTokens, idJagAssertion, jwtBearerTokens, type TokenParameters } from "./machine-tokens.js";

export interface IssuerContext extends DiscoveryContext, BindingContext {
  /** Whether tokens are bound to a key of this client. */
  dpop: DpopPolicy;
  /** DPoP nonces of the servers. */
  nonces: Nonces;
}

/** The dependencies of a token request with a machine grant. */
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
  const known = challenge === undefined ? await checkedTarget(context, login, request) : undefined;
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
  if (strategyOf(grant).proof !== undefined || isProven) return;
  const message = `the client ${quote(client.clientId)} has neither a secret nor a key, and the grant ${grant.type} requires one`;
  const hint = "give its client.clientSecret or client.privateKey";
  const remedy = { action: "configure", option: "clientSecret", also: "privateKey" } as const;
  throw new AgentAuthError("usage", message, { class: "usage", hint, remedy });
}

/** A second failure in discovery adds nothing, unless the server now names another issuer. */
function rethrowIfChanged(error: unknown): undefined {
  if (isAgentAuthError(error, "issuer_changed")) throw error;
}

/** {@link knownTarget}, unless the client was bound to another issuer in between. */
async function checkedTarget(
  context: MachineContext,
  login: IssuerContext,
  request: MachineRequest,
): Promise<GrantTarget | undefined> {
  const known = knownTarget(context, login, request);
  if (known === undefined) return undefined;
  try {
    await checkBinding(context, login, known, request);
    return known;
  } catch (error) {
    if (!isAgentAuthError(error) || error.code !== "issuer_changed") throw error;
    return undefined;
  }
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
  const secret = credentialOf(client);
  const assertion = strategyOf(grant).proof && "the assertion";
  const credential = secret && assertion ? `${secret} or ${assertion}` : (secret ?? assertion);
  return holdToIssuer(login, { client, issuer, server, credential, isInteractive: false, signal });
}

/** The source of the earlier token, if the client still authenticates in the same way. */
function knownTarget(
  { client }: MachineContext,
  login: IssuerContext,
  { previous, scope }: MachineRequest,
): GrantTarget | undefined {
  if (previous === undefined) return undefined;
  const { authMethod } = previous.client;
  const byKey = authMethod === "private_key_jwt";
  const hasSameTokens =
    byKey === (client.privateKey !== undefined) &&
    (authMethod === "none") === (client.privateKey === undefined && client.clientSecret === undefined) &&
    (client.authMethod ?? authMethod) === authMethod;
  if (!hasSameTokens) return undefined;
  const acceptedTokenType = acceptedTypeFor(previous, login);
  return {
    ...previous,
    client: { ...previous.client, clientSecret: clientSecretOf(client) },
    requestedScope: unionScopes(previous.requestedScope, scope),
    acceptedTokenType,
  };
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
    endpoints: {
      token: issuer.tokenEndpoint,
      introspection: issuer.introspectionEndpoint,
      revocation: issuer.revocationEndpoint,
      endSession: undefined,
      jwks: issuer.jwksUri,
    },
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
    login.trace({ ...entry, used: false, why: messageOf(error) });
    throw error;
  }
}

function tokensFor(
  { grant, httpTo }: MachineContext,
  call: TokenCall & Pick<IssuerContext, "profile">,
  parameters: TokenParameters,
  { proof = "" }: MachineRequest,
): Promise<GrantTokens> {
  const steps: TokenSteps = {
    clientCredentials: () => clientCredentialsTokens(call, parameters),
    jwtBearer: (assertion, { audience, scope: allowed } = {}) => {
      const scope = allowed === undefined ? parameters.scope : commonScopes(parameters.scope, allowed);
      return jwtBearerTokens(call, { ...parameters, scope, assertion, audience });
    },
    async assertionOf({ assertion, audience = call.issuer }) {
      const { issuer, tokenEndpoint, signal } = call;
      return assertion({ audience, issuer, tokenEndpoint, resource: parameters.resource, signal });
    },
    async idJag(byUser, subject, idToken) {
      const { iss, sub } = readClaims(idToken)?.claims ?? {};
      const expected = { iss: byUser.idp.issuer ?? iss, sub, clientId: call.client.clientId };
      const wanted = { ...parameters, ...subject, audience: call.issuer, expected };
      const requested = idJagAssertion(callTo(byUser.idp, call, httpTo), wanted);
      const { value: assertion, scope } = await requested.catch((error: unknown) => {
        throw providerFailure(error, byUser, { ...wanted, profile: call.profile });
      });
      return { assertion, scope };
    },
  };
  return strategyOf(grant).tokens(steps, proof, grant);
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
  checkEndpoint(tokenEndpoint, "the token endpoint of the identity provider", {
    action: "configure",
    option: "idpTokenEndpoint",
  });
  const issuer = idp.issuer ?? new URL(tokenEndpoint).origin;
  const { clock, signal } = call;
  return { clock, signal, http: httpTo(tokenEndpoint), issuer, tokenEndpoint, client: recordOf(idp, issuer) };
}
