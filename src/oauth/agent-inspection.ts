import { isAgentAuthError } from "../errors.js";
import type { AgentContext } from "./agent-context.js";
import { checkCall, type DiscoveryReport, type StatusOptions } from "./agent-options.js";
import type { AgentUserView } from "./agent-tokens.js";
import { discover } from "./discovery/discovery.js";
import { loginRequired, type TokenOptions } from "./grant/grant-requirements.js";
import type { TraceEntry } from "./http/trace.js";
import { GRANT_STRATEGIES, type GrantFlag, noStoredTokenError } from "./machine/grant-strategies.js";
import type { ConnectionPage, ConnectionQuery } from "./model/connection.js";
import { type Grant, hasExpired } from "./model/grant.js";
import { IDP_ACCOUNT, machineGrantOf } from "./model/machine-grant.js";
import { type Introspection, introspect } from "./token/introspection.js";

/** Whether a client can do its work. */
export interface AgentHealth {
  /** Whether there are no errors. */
  ready: boolean;
  /** Where the logins are stored, without credentials. */
  storedIn: string;
  /** Why the client cannot work: the store does not answer or must not be used, or the client is closed. */
  errors: string[];
  /** Why logins may be lost although they were stored. */
  risks: string[];
}

/** Asks the store, and reports what it says. */
export async function checkHealth(
  { options: own, pending }: AgentContext,
  options: Pick<TokenOptions, "signal">,
): Promise<AgentHealth> {
  checkCall(options);
  const { signal } = options;
  const { store } = own;
  const closed = pending.isClosed ? ["the client is closed"] : [];
  const report = { storedIn: store.location, risks: [] };
  try {
    const health = (await store.health?.({ signal })) ?? { errors: [], risks: [] };
    // A store that cannot say how it is can be read, or cannot.
    if (store.health === undefined) await store.read({ profile: "health", server: "https://health.invalid/" });
    const errors = [...closed, ...health.errors];
    return { ...report, risks: [...health.risks], errors, ready: errors.length === 0 };
  } catch (error) {
    if (!isAgentAuthError(error) || error.class === "aborted") throw error;
    return { ...report, errors: [...closed, error.message], ready: false };
  }
}

/** Describes the stored logins, of one MCP server or of all. */
export async function listLogins(
  { context, isOfUser }: AgentUserView,
  mcpUrl: string | undefined,
  options: StatusOptions,
): Promise<LoginStatus[]> {
  checkCall(options);
  if (isOfUser && options.all) throw new TypeError("a client of one user lists no others: leave out all");
  const { store, loginHint } = context.options;
  const key = mcpUrl === undefined ? undefined : context.key(mcpUrl);
  // A login that cannot be read is an error if it is the requested one.
  if (key) await store.read(key);
  const filter = { server: key?.server, ...(!options.all && { profile: context.profile }) };
  const grants = await store.list(filter, options.onUnusable);
  return grants
    .filter(({ account }) => !key || account === loginHint || !loginHint)
    .map((grant) => describeLogin(grant, context.clock.epoch(), store.location));
}

/** A page of the stored logins of a client's profile. */
export async function listConnections(
  { profile, options }: AgentContext,
  query: Omit<ConnectionQuery, "tenant" | "profile">,
): Promise<ConnectionPage> {
  for await (const page of options.store.connections({ ...query, tenant: undefined, profile })) return page;
  return { items: [], cursor: undefined };
}

/** Discovers the issuer of a server, and reports every request, also on failure. */
export async function reportDiscovery(
  context: AgentContext,
  mcpUrl: string,
  signal: AbortSignal | undefined,
): Promise<DiscoveryReport> {
  const trace: TraceEntry[] = [];
  try {
    const key = context.key(mcpUrl);
    // Discovery works without a readable store.
    const remembered = await context.options.store.read(key).catch(() => undefined);
    const login = context.loginContext(key, remembered, (entry) => trace.push(entry));
    return { found: await discover(login, mcpUrl, undefined, signal), trace, error: undefined };
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    return { found: undefined, trace, error };
  }
}

/** Introspects the stored token of a server at its issuer. */
export async function introspectStored(
  { context, tokens }: AgentUserView,
  mcpUrl: string,
  options: Pick<TokenOptions, "signal">,
): Promise<Introspection> {
  checkCall(options);
  const key = context.key(mcpUrl);
  const grant = await tokens.find(key);
  if (!grant) throw tokens.ofMachine ? noStoredTokenError(key.server) : loginRequired(key, "not logged in");
  context.requireIssuer(grant.issuer, grant.server);
  const { client, privateKey, http } = (await tokens.clientOf(grant)).context.callOf(grant);
  return introspect({ ...grant, client }, http, options.signal, privateKey);
}

/** A stored login as `status` shows it, without secrets. */
export interface LoginStatus {
  /** The profile that it belongs to. */
  profile: string;
  /** The MCP server, canonical. */
  server: string;
  /** The account that the login requested; null if none was named. */
  account: string | null;
  /** How it gets tokens: by a login of the user at the server (`sign-in`) or at an identity provider (`idp`), or by a machine grant. */
  grant: "sign-in" | "idp" | GrantFlag;
  /** The type of its tokens: `DPoP` tokens are bound to a key that is stored with them. */
  token_type: "Bearer" | "DPoP";
  /** The `resource` parameter; `none` if none is sent. */
  resource: string;
  /** The authorization server. */
  issuer: string;
  /** The options that the login was made with and that stay in force for it, such as `acceptTokenType`. */
  exceptions: readonly LoginException[];
  /** The client that the tokens were issued to. */
  client_id: string;
  /** The scopes granted, separated by blanks; null if unknown. */
  scope: string | null;
  /** RFC 3339; null if the issuer did not say. */
  expires_at: string | null;
  /** RFC 3339. */
  signed_in_at: string;
  /** `expired` if the token has expired, or if the issuer rejected the grant (`reason`) and a new login is required. */
  state: "valid" | "expired";
  /** Whether it can be refreshed without a login. */
  refreshable: boolean;
  /** RFC 3339 if the response to the last refresh was lost, so that the token is used until it expires; else null. */
  refresh_lost_at: string | null;
  /** Why the issuer rejected it; null if it did not. */
  reason: string | null;
  /** Where it is stored. */
  stored_in: string;
}

/** A grant without its secrets. */
export function describeLogin(grant: Grant, now: number, location: string): LoginStatus {
  const { expiresAt, scope, refreshToken } = grant.tokens;
  const machine = machineGrantOf(grant.account);
  return {
    profile: grant.profile,
    server: grant.server,
    account: grant.account ?? null,
    grant: machine ? GRANT_STRATEGIES[machine].flag : grant.account === IDP_ACCOUNT ? "idp" : "sign-in",
    token_type: grant.proofKey === undefined ? "Bearer" : "DPoP",
    resource: grant.resource,
    issuer: grant.issuer,
    exceptions: exceptionsOf(grant),
    client_id: grant.client.clientId,
    scope: scope ?? null,
    expires_at: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    signed_in_at: new Date(grant.signedInAt).toISOString(),
    state: grant.retired || hasExpired(grant.tokens, now) ? "expired" : "valid",
    // A machine uses its own credential.
    refreshable: (refreshToken !== undefined || machine !== undefined) && !grant.retired,
    refresh_lost_at: grant.lostRefresh === undefined ? null : new Date(grant.lostRefresh.at).toISOString(),
    reason: grant.retired?.reason ?? null,
    stored_in: location,
  };
}

/** An option that a login was made with and that stays in force for its issuer: an exception of this one server. */
export interface LoginException {
  /** The option of `AgentClient`, such as `acceptTokenType`. */
  option: string;
  /** Its value; absent for an option that is only set. */
  value?: string;
}

/** The exceptions that are stored with a login. */
export function exceptionsOf(grant: Grant): LoginException[] {
  const { overrides, acceptedTokenType, authorizationParams = {}, resource, issuer, namedIssuer } = grant;
  const exceptionOf = (option: string) => (option === "resource" ? { option, value: resource } : { option });
  return [
    ...overrides.map(exceptionOf),
    ...(acceptedTokenType === undefined ? [] : [{ option: "acceptTokenType", value: acceptedTokenType }]),
    ...Object.entries(authorizationParams).map(([name, value]) => {
      return { option: "authorizationParams", value: `${name}=${value}` };
    }),
    ...(namedIssuer === undefined ? [] : [{ option: "issuer", value: issuer }]),
  ];
}
