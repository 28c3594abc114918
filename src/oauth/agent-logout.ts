// How logins end, loaded where one does.
import { type AgentAuthError, abortedError, isAgentAuthError } from "../errors.js";
import { type AgentContext, checkCall } from "./agent-options.js";
import type { AgentUser, AgentUserView } from "./agent-tokens.js";
import { releaseClient } from "./client/issuer-binding.js";
import type { TokenOptions } from "./grant/grant-requirements.js";
import { refreshLease } from "./grant/refresh.js";
import type { Connection } from "./model/connection.js";
import type { Grant } from "./model/grant.js";
import type { GrantStore } from "./model/grant-store.js";
import { readUsable } from "./model/grant-summary.js";
import type { Lease } from "./model/lease.js";
import { REVOCATION_MS, type RemoteLogout, revokeRecorded, revokeRemotely } from "./token/revocation.js";

/** A login that {@link AgentClient.logoutIdp} ended: that at the identity provider, or one that came from it. */
export interface IdpLogout extends RemoteLogout {
  /** The issuer of the provider, or the MCP server. */
  server: string;
  /** The account that it was stored under. */
  account: string | null;
  /** It is no longer stored. */
  removed: boolean;
}

/** Options of {@link AgentClient.disconnect}. */
export interface DisconnectOptions extends Pick<TokenOptions, "signal"> {
  /**
   * The account of the login: null for the one without an account, as `status` lists it. Default: that of the login that
   * {@link AgentClient.token} would use.
   */
  account?: string | null | undefined;
}

/** Options of {@link AgentClient.disconnectAll}: without a tenant and a profile, the client's own profile. */
export interface DisconnectAllOptions extends Pick<TokenOptions, "signal">, Partial<Pick<AgentUser, "tenant">> {
  /** The profile whose logins end. Default: every one of the tenant. */
  profile?: string | undefined;
}

/** What {@link AgentClient.disconnectAll} did, in logins. */
export interface DisconnectSummary {
  /** Removed from the store. */
  removed: number;
  /** Revoked by their issuers. */
  revoked: number;
  /** Not revoked yet: {@link AgentClient.retryRevocations} tries again. */
  pending: number;
}

/** Ends the login at a server, if there is one. */
export async function disconnect(
  { context, tokens }: AgentUserView,
  mcpUrl: string | URL,
  options: DisconnectOptions,
): Promise<{ removed: boolean } & RemoteLogout> {
  checkCall(options);
  const { account, signal } = options;
  const key = context.key(mcpUrl);
  const grant = await (account === undefined
    ? tokens.find(key).then((found) => found ?? tokens.findStored(key, false))
    : context.options.store.read({ ...key, account: account ?? undefined }));
  if (!grant) return { removed: false, revoked: null, sessionEnded: null };
  return { removed: true, ...(await removeAndRevoke(await revokingContext(tokens, context, grant), grant, signal)) };
}

/** The context of the client that revokes a grant: without its recipe, that of a machine grant has its secret at least. */
async function revokingContext(
  tokens: AgentUserView["tokens"],
  own: AgentContext,
  grant: Grant,
): Promise<AgentContext> {
  if (grant.recipe === undefined) return own;
  return tokens.clientOf(grant).then(
    ({ context }) => context,
    () => own,
  );
}

/** Ends the login at the identity provider, and those at servers that came from it. */
export async function logoutIdp(
  { context, tokens }: AgentUserView,
  options: Pick<TokenOptions, "signal">,
): Promise<IdpLogout[]> {
  checkCall(options);
  const end = async (grant: Grant): Promise<IdpLogout> => {
    const outcome = await removeAndRevoke(context, grant, options.signal);
    return { server: grant.server, account: grant.account ?? null, removed: true, ...outcome };
  };
  // The login comes first: without it no process gets another token.
  return Promise.all((await (await tokens.ofIdp()).withDerived(context.profile)).map(end));
}

/** Ends the logins of a tenant, of a profile, or of the client's own profile, and tries earlier revocations again. */
export async function disconnectAll(view: AgentUserView, options: DisconnectAllOptions): Promise<DisconnectSummary> {
  checkCall(options);
  const { tenant, profile, signal } = options;
  if (view.isOfUser && (tenant !== undefined || profile !== undefined))
    throw new TypeError("a client of one user disconnects no others: leave out tenant and profile");
  const context = tenant === undefined ? view.context : view.users.tokensOf(tenant).context;
  const whose = tenant === undefined ? (profile ?? view.context.profile) : profile;
  const done = await disconnectLogins(context, whose, signal);
  const { revoked, pending } = await retryRevocations(context, whose, signal);
  return { removed: done.removed, revoked: done.revoked + revoked, pending };
}

/**
 * Removes a stored login, with the binding of its client if no other login has it, then revokes its tokens at the issuer. After that no process gets its tokens from the store, and a
 * refresh that was in flight has ended: what it got is not stored, is returned to no caller, and is revoked too.
 *
 * @param down the token endpoints whose revocations are left for later; one that does not answer is added
 */
async function removeAndRevoke(
  agent: AgentContext,
  grant: Grant,
  signal: AbortSignal | undefined,
  down: Set<string> = new Set(),
): Promise<RemoteLogout> {
  const { store } = agent.options;
  return revokeRecorded(store, grant, async () => {
    await store.remove(grant);
    const [outcome] = await Promise.all([
      revokeUnlessDown(agent, grant, signal, down),
      markSpent(store, grant),
      releaseClient(store, grant),
    ]);
    return outcome;
  });
}

async function revokeUnlessDown(
  agent: AgentContext,
  grant: Grant,
  signal: AbortSignal | undefined,
  down: Set<string>,
): Promise<RemoteLogout> {
  if (down.has(grant.endpoints.token)) return { revoked: false, sessionEnded: null };
  const { client, privateKey, http } = agent.callOf(grant);
  const context = { http, events: agent.events, signal, privateKey };
  const outcome = await revokeRemotely({ ...grant, client }, context);
  if (isAgentAuthError(outcome.error) && outcome.error.class === "unavailable") down.add(grant.endpoints.token);
  return outcome;
}

/** Records that a login has ended, so that its record is recognized if it is put back, after a refresh in flight has ended. */
async function markSpent(store: GrantStore, grant: Grant): Promise<void> {
  const work = async (lease: Lease) => lease.markRotated?.();
  // The login is removed all the same; who is refreshing it finds it gone.
  const wait = { patienceMs: REVOCATION_MS, signal: AbortSignal.timeout(REVOCATION_MS) };
  await store
    .lease(refreshLease(grant), work, { durationMs: REVOCATION_MS, refreshes: grant, once: true, ...wait })
    .catch((error) => {
      if (!isAgentAuthError(error)) throw error;
    });
}

/** Logins that are ended at the same time. */
const AT_ONCE = 8;
/** The second round ends what a login at an identity provider got while the first one went on. */
const ROUNDS = 2;

/** Ends every login of a tenant or of a profile. @throws the first error of a login that cannot be read, after the others */
async function disconnectLogins(
  agent: AgentContext,
  profile: string | undefined,
  signal: AbortSignal | undefined,
): Promise<DisconnectSummary> {
  const { store } = agent.options;
  const done: DisconnectSummary = { removed: 0, revoked: 0, pending: 0 };
  const down = new Set<string>();
  let failure: AgentAuthError | undefined;
  const note = (error: AgentAuthError) => {
    failure ??= error;
  };
  const end = async ({ profile, server, account }: Connection) => {
    const grant = await readUsable(() => store.read({ profile, server, account: account ?? undefined }), note);
    if (grant === undefined) return;
    const { revoked } = await removeAndRevoke(agent, grant, signal, down);
    done.removed++;
    if (revoked) done.revoked++;
    if (revoked === false) done.pending++;
  };
  for (let round = 0, before = -1; round < ROUNDS && done.removed > before; round++) {
    before = done.removed;
    for await (const { items } of store.connections({ profile, onUnusable: note })) {
      for (let from = 0; from < items.length; from += AT_ONCE) {
        if (signal?.aborted) throw abortedError(signal);
        await Promise.all(items.slice(from, from + AT_ONCE).map(end));
      }
    }
  }
  if (failure) throw failure;
  return done;
}

/**
 * Revokes what could not be revoked before, of one profile or of all. An issuer that does not answer is asked once.
 *
 * @param down as of {@link removeAndRevoke}
 */
export async function retryRevocations(
  agent: AgentContext,
  profile: string | undefined,
  signal: AbortSignal | undefined,
  down: Set<string> = new Set(),
): Promise<Pick<DisconnectSummary, "revoked" | "pending">> {
  const done = { revoked: 0, pending: 0 };
  for await (const { grant, remove } of agent.options.store.unrevoked?.list() ?? []) {
    if (signal?.aborted) throw abortedError(signal);
    if (profile !== undefined && profile !== grant.profile) continue;
    const { revoked } = await revokeUnlessDown(agent, grant, signal, down);
    if (revoked) await remove();
    done[revoked ? "revoked" : "pending"]++;
  }
  return done;
}
