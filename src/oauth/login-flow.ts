import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { buildAuthorization, checkCallback, type PendingAuthorization } from "./authorization.js";
import { deviceLogin } from "./device.js";
import { type Discovered, discover } from "./discovery.js";
import { type ClientRecord, type Grant, type TokenAnswer, tokensOf } from "./grant.js";
import type { GrantStore } from "./grant-store.js";
import type { LoginSession } from "./login.js";
import type { LoginContext, LoginRequest } from "./login-context.js";
import { isForgotten, obtainClient, redirectForm } from "./registration.js";
import { chooseScope, parseScope } from "./scope.js";
import { exchangeCode } from "./token.js";

/** Signs a person in and keeps what comes of it. The grant is stored and read back before anybody is told. */
export async function loginWith(context: LoginContext, request: LoginRequest): Promise<Grant> {
  const found = await discover(context, request.mcpUrl, request.challenge, request.signal);
  const scope = scopeFor(found, request);
  const resource = context.resource ?? found.resource?.resource ?? found.server;
  if (context.flow === "device") {
    const { client, answer } = await deviceLogin(context, { found, scope, resource, request });
    return keep(context, grantOf(context, { found, client, scope, resource, answer }));
  }
  const session = await request.method.open({
    resource: found.server,
    issuer: found.issuer.issuer,
    preferredRedirectUri: await knownRedirect(context.store, found.issuer.issuer),
    signal: request.signal,
  });
  try {
    const { client, pending } = await prepareAuthorization(context, { found, scope, resource, session, signal: request.signal });
    const parameters = await session.authorize({
      url: pending.authorizationUrl,
      state: pending.state,
      allowBareCode: !pending.promisesIss,
      signal: request.signal,
    });
    const checked = checkCallback(pending, parameters);
    const answer = await finishCode(context, { found, client, pending, parameters: checked, signal: request.signal });
    const grant = await keep(context, grantOf(context, { found, client, scope, resource, answer }));
    await session.close({ ok: true });
    return grant;
  } catch (error) {
    await session.close({ ok: false, error: isAgentAuthError(error) ? error : internal(error) });
    throw error;
  }
}

/** The scopes of a login, by the order of `chooseScope`. */
export function scopeFor(found: Discovered, request: Pick<LoginRequest, "scope" | "previousScope">): string[] {
  const from = found.server;
  return chooseScope({
    explicit: request.scope === undefined ? undefined : parseScope(request.scope, "scope", "the caller"),
    challenged: found.challenge?.scope === undefined ? undefined : parseScope(found.challenge.scope, "scope", from),
    resource: found.resource?.scopesSupported,
    server: found.issuer.scopesSupported,
    previous: request.previousScope === undefined ? undefined : parseScope(request.previousScope, "scope", from),
  });
}

async function knownRedirect(store: GrantStore, issuer: string): Promise<string | undefined> {
  for (const form of ["http://127.0.0.1/callback", "http://localhost/callback"]) {
    const client = await store.readClient(issuer, form);
    if (client?.redirectUri) return client.redirectUri;
  }
  return undefined;
}

interface Preparation {
  found: Discovered;
  scope: readonly string[];
  resource: string;
  session: LoginSession;
  signal: AbortSignal;
}

/** A client and the request to sign in with it; a client that the issuer has forgotten is replaced once. */
async function prepareAuthorization(
  context: LoginContext,
  { found, scope, resource, session, signal }: Preparation,
): Promise<{ client: ClientRecord; pending: PendingAuthorization }> {
  const { redirectUri } = session;
  const form = redirectForm(redirectUri);
  const { issuer } = found.issuer;
  const known = await context.store.readClient(issuer, form);
  const obtain = () =>
    obtainClient({ ...context, server: found.issuer, redirectUri, scope, now: context.clock.epoch(), signal });
  const build = (client: ClientRecord) =>
    buildAuthorization({ server: found.issuer, client, redirectUri, scope, resource, loginHint: context.loginHint });
  const client = await obtain();
  const pending = await build(client);
  if (client.source !== "dynamic" || client.clientId !== known?.clientId) return { client, pending };
  if (!(await isForgotten(context.http, pending.authorizationUrl, signal))) return { client, pending };
  context.trace({
    step: "authorization",
    method: "GET",
    url: found.issuer.authorizationEndpoint,
    used: false,
    why: "the issuer no longer knows this client; it is registered anew",
  });
  await context.store.removeClient(issuer, form);
  const renewed = await obtain();
  return { client: renewed, pending: await build(renewed) };
}

/** Trades the code of a callback for tokens. */
export function finishCode(
  context: Pick<LoginContext, "http" | "clock">,
  given: {
    found: Pick<Discovered, "issuer">;
    client: ClientRecord;
    pending: PendingAuthorization;
    parameters: URLSearchParams;
    signal: AbortSignal;
  },
): Promise<TokenAnswer> {
  const { found, client, pending, parameters, signal } = given;
  const { issuer, tokenEndpoint } = found.issuer;
  return exchangeCode({ ...context, issuer, tokenEndpoint, client, signal }, { ...pending, parameters });
}

function grantOf(
  context: LoginContext,
  { found, client, scope, resource, answer }: { found: Discovered; client: ClientRecord; scope: readonly string[]; resource: string; answer: TokenAnswer },
): Grant {
  const { issuer } = found;
  const requestedScope = scope.length > 0 ? scope.join(" ") : undefined;
  return {
    profile: context.profile,
    server: found.server,
    resource,
    issuer: issuer.issuer,
    endpoints: {
      token: issuer.tokenEndpoint,
      introspection: issuer.introspectionEndpoint,
      revocation: issuer.revocationEndpoint,
      endSession: issuer.endSessionEndpoint,
      jwks: issuer.jwksUri,
    },
    client,
    requestedScope,
    tokens: tokensOf(answer, requestedScope),
    generation: 0,
    retired: undefined,
  };
}

const SAVE_TRIES = 5;

/** Stores a new grant over whatever is there, and reads it back: a login that was not kept is not a login. */
async function keep({ store }: LoginContext, grant: Grant): Promise<Grant> {
  const key = { profile: grant.profile, server: grant.server };
  for (let tries = 0; tries < SAVE_TRIES; tries++) {
    const stored = await store.read(key);
    const next = { ...grant, generation: (stored?.generation ?? 0) + 1 };
    if (!(await store.save(next, stored?.generation))) continue;
    const back = await store.read(key);
    if (back && back.generation >= next.generation) return back;
    break;
  }
  throw new AgentAuthError("store_failed", `the sign-in succeeded, but its tokens could not be kept in ${quote(store.location)}`, {
    class: "store",
    hint: "agentauth status tells where they should be",
  });
}

function internal(cause: unknown): AgentAuthError {
  return new AgentAuthError("internal_error", "the sign-in failed", { class: "internal", cause });
}
