import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { bindUsedClient, credentialOf, holdToIssuer } from "../client/issuer-binding.js";
import { type PreRegisteredClient, preRegisteredClient, secretOf } from "../client/pre-registered-client.js";
import type { BearerChallenge } from "../discovery/challenge.js";
import { discoverIssuer, liftedFor } from "../discovery/discovery.js";
import { newProofKey, proverFor } from "../dpop/dpop.js";
import type { ClientRecord, Grant, GrantTokens } from "../grant/grant.js";
import type { GrantKey } from "../grant/grant-store.js";
import type { OAuthHttp } from "../http/http.js";
import type { LoginContext } from "../login/login-context.js";
import { scopeFor } from "../login/login-flow.js";
import { union } from "../token/scope.js";
import type { TokenCall } from "../token/token.js";
import { checkEndpoint, recordOf } from "../token/token-call.js";
import { machineFailure } from "./machine-failure.js";
import { grantFlag, type IdentityProvider, type MachineGrant } from "./machine-grant.js";
import { clientCredentialsTokens, idJagAssertion, jwtBearerTokens } from "./machine-tokens.js";

/** What a request for a token of a machine depends on. */
export interface MachineContext {
  grant: MachineGrant;
  client: PreRegisteredClient;
  /** Everything that discovery needs; what was lifted for the grant before stays lifted for its issuer. */
  loginContext(key: GrantKey, before: Grant | undefined): LoginContext;
  /** How requests to an address leave that is nobody's but our user's word. */
  httpTo(address: string): OAuthHttp;
}

/** What one request is for. */
export interface MachineRequest {
  key: GrantKey;
  /** The assertion or the id token, where the grant has one. */
  proof: string | undefined;
  /** Scopes, separated by blanks. */
  scope: string | undefined;
  /** The scopes asked for before. */
  previousScope: string | undefined;
  /** The challenge of the answer that led here, if there was one. */
  challenge: BearerChallenge | undefined;
  /** What is kept of an earlier request. */
  before: Grant | undefined;
  signal: AbortSignal;
}

type Target = Omit<Grant, "tokens" | "signedInAt" | "refusals" | "generation" | "retired">;

/**
 * Asks for a token: where an earlier one came from, else where discovery leads. What the issuer says no to is not asked
 * for again, and not by another grant; where there is no verdict, the server may have moved to another issuer.
 */
export async function requestMachineGrant(context: MachineContext, request: MachineRequest): Promise<Grant> {
  const { key, before, challenge, signal } = request;
  const login = context.loginContext(key, before);
  checkProof(context, login);
  const known = challenge === undefined ? await heldTarget(context, login, request) : undefined;
  if (known === undefined) return ask(context, login, await findTarget(context, login, request), request);
  try {
    return await ask(context, login, known, request);
  } catch (error) {
    if (!isAgentAuthError(error) || error.class === "auth" || error.class === "usage" || signal.aborted) throw error;
    const found = await findTarget(context, login, request).catch(onlyIfChanged);
    if (found === undefined || (found.issuer === known.issuer && found.endpoints.token === known.endpoints.token))
      throw error;
    return ask(context, login, found, request);
  }
}

/** A token in a client's own name is only for one that proves itself (RFC 6749 section 4.4). */
function checkProof({ grant, client }: MachineContext, { mutualTls }: LoginContext): void {
  const isProven = client.clientSecret !== undefined || client.privateKey !== undefined || mutualTls === true;
  if (grant.type !== "client_credentials" || isProven) return;
  throw new AgentAuthError(
    "usage",
    `the client ${quote(client.clientId)} has nothing to prove itself by, which ${grantFlag(grant.type)} is for`,
    { class: "usage", hint: "give its secret in AGENTAUTH_CLIENT_SECRET, or its key with --private-key <file>" },
  );
}

/** That discovery fails as well says nothing new, unless it is that the server has changed sides. */
function onlyIfChanged(error: unknown): undefined {
  if (isAgentAuthError(error) && error.code === "issuer_changed") throw error;
}

/** {@link knownTarget}, where the client is not bound to another issuer since. */
async function heldTarget(
  context: MachineContext,
  login: LoginContext,
  request: MachineRequest,
): Promise<Target | undefined> {
  const known = knownTarget(context, request);
  if (known === undefined) return undefined;
  try {
    await hold(context, login, known, request.signal);
    return known;
  } catch (error) {
    if (!isAgentAuthError(error) || error.code !== "issuer_changed") throw error;
    return undefined;
  }
}

/** Holds the client to its issuer, before its secret, an assertion or an id token is sent anywhere. */
function hold(
  { grant, client }: MachineContext,
  login: LoginContext,
  { issuer, server }: Pick<Target, "issuer" | "server">,
  signal: AbortSignal,
): Promise<void> {
  const own = credentialOf(client);
  const assertion = grant.type === "client_credentials" ? undefined : "the assertion";
  const credential = own && assertion ? `${own} or ${assertion}` : (own ?? assertion);
  return holdToIssuer(login, { client, issuer, server, credential, byPerson: false, signal });
}

/** Where the token before this one came from, if the client can go there as it did then. */
function knownTarget({ client }: MachineContext, { before, scope }: MachineRequest): Target | undefined {
  if (before === undefined) return undefined;
  const { authMethod } = before.client;
  const byKey = authMethod === "private_key_jwt";
  const isSame =
    byKey === (client.privateKey !== undefined) &&
    (authMethod === "none") === (client.privateKey === undefined && client.clientSecret === undefined) &&
    (client.authMethod ?? authMethod) === authMethod;
  if (!isSame) return undefined;
  return {
    ...before,
    client: { ...before.client, clientSecret: secretOf(client) },
    requestedScope: union(before.requestedScope, scope),
  };
}

async function findTarget(context: MachineContext, login: LoginContext, request: MachineRequest): Promise<Target> {
  const { key, challenge, signal } = request;
  const found = await discoverIssuer(login, key.server, challenge, signal);
  const { issuer } = found;
  await hold(context, login, { issuer: issuer.issuer, server: found.server }, signal);
  const client = preRegisteredClient({ ...login, client: context.client, server: issuer, isMachine: true });
  // Nothing that outlives the token is given to a machine, which asks anew.
  const scope = scopeFor(found, request).scope.filter((one) => one !== "offline_access");
  return {
    profile: key.profile,
    server: found.server,
    account: key.account,
    resource: login.resource ?? found.resource?.resource ?? found.server,
    issuer: issuer.issuer,
    endpoints: {
      token: issuer.tokenEndpoint,
      introspection: issuer.introspectionEndpoint,
      revocation: issuer.revocationEndpoint,
      endSession: undefined,
      jwks: issuer.jwksUri,
    },
    client,
    requestedScope: scope.length > 0 ? scope.join(" ") : undefined,
    overrides: liftedFor(issuer.issuer, login),
    proofKey: await newProofKey(login.dpop, found),
  };
}

async function ask(
  context: MachineContext,
  login: LoginContext,
  target: Target,
  request: MachineRequest,
): Promise<Grant> {
  const { client, issuer, endpoints, resource, requestedScope: scope } = target;
  const { signal } = request;
  const { privateKey } = context.client;
  const prover = proverFor(target, login.nonces);
  const call = { ...login, issuer, tokenEndpoint: endpoints.token, client, privateKey, prover, signal };
  const entry = { step: "token", method: "POST", url: endpoints.token } as const;
  try {
    const tokens = await tokensFor(context, call, { resource, scope }, request);
    login.trace({ ...entry, used: true, why: context.grant.type });
    // A secret is given at every use, so that it need not be kept anywhere else.
    const kept: ClientRecord = { ...client, clientSecret: undefined };
    const fresh = { signedInAt: tokens.obtainedAt, refusals: [], generation: 0, retired: undefined };
    const made = { ...target, client: kept, tokens, ...fresh };
    await bindUsedClient(login, made);
    return made;
  } catch (thrown) {
    const error = machineFailure(thrown, { grant: context.grant, client });
    login.trace({ ...entry, used: false, why: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

async function tokensFor(
  { grant, httpTo }: MachineContext,
  call: TokenCall,
  wish: { resource: string; scope: string | undefined },
  { proof = "" }: MachineRequest,
): Promise<GrantTokens> {
  if (grant.type === "client_credentials") return clientCredentialsTokens(call, wish);
  if (grant.type === "jwt_bearer") return jwtBearerTokens(call, { ...wish, assertion: proof });
  const audience = call.issuer;
  const { value } = await idJagAssertion(callTo(grant.idp, call, httpTo), { ...wish, idToken: proof, audience });
  return jwtBearerTokens(call, { ...wish, assertion: value });
}

/** The request to the identity provider, which knows us by a client of its own. */
function callTo(idp: IdentityProvider, call: TokenCall, httpTo: MachineContext["httpTo"]): TokenCall {
  const { tokenEndpoint } = idp;
  checkEndpoint(tokenEndpoint, "the token endpoint of the identity provider", "--idp-token-endpoint <url>");
  const issuer = idp.issuer ?? new URL(tokenEndpoint).origin;
  const { clock, signal } = call;
  return { clock, signal, http: httpTo(tokenEndpoint), issuer, tokenEndpoint, client: recordOf(idp, issuer) };
}
