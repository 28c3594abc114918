import { isAgentAuthError } from "../errors.js";
import type { AgentContext } from "./agent-context.js";
import { checkCall, type DiscoveryReport, type StatusOptions } from "./agent-options.js";
import type { AgentUserView } from "./agent-users.js";
import { discover } from "./discovery/discovery.js";
import { loginRequired, type TokenOptions } from "./grant/grant-requirements.js";
import type { TraceEntry } from "./http/trace.js";
import { describeLogin, type LoginStatus } from "./login-status.js";
import { noStoredTokenError } from "./machine/machine-identity.js";
import type { ConnectionPage, ConnectionQuery } from "./model/connection.js";
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
  const { client, privateKey, http } = context.callOf(grant);
  return introspect({ ...grant, client }, http, options.signal, privateKey);
}
