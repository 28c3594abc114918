// How logins end: keepAlive loads it at its start, AgentClient where a login ends.
import { type AgentAuthError, abortedError, isAgentAuthError } from "../errors.js";
import type { AgentContext } from "./agent-options.js";
import { releaseClient } from "./client/issuer-binding.js";
import { refreshLease } from "./grant/refresh.js";
import type { Connection } from "./model/connection.js";
import type { Grant } from "./model/grant.js";
import type { GrantStore } from "./model/grant-store.js";
import { readUsable } from "./model/grant-summary.js";
import type { Lease } from "./model/lease.js";
import { REVOCATION_MS, type RemoteLogout, revokeRecorded, revokeRemotely } from "./token/revocation.js";

/** What {@link AgentClient.disconnectAll} did, in logins. */
export interface DisconnectSummary {
  /** Removed from the store. */
  removed: number;
  /** Revoked by their issuers. */
  revoked: number;
  /** Not revoked yet: {@link AgentClient.retryRevocations} tries again. */
  pending: number;
}

/**
 * Removes a stored login, with the binding of its client if no other login has it, then revokes its tokens at the issuer. After that no process gets its tokens from the store, and a
 * refresh that was in flight has ended: what it got is not stored, is returned to no caller, and is revoked too.
 *
 * @param down the token endpoints whose revocations are left for later; one that does not answer is added
 */
export async function removeAndRevoke(
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

async function revokeUnlessDown(agent: AgentContext, grant: Grant, signal: AbortSignal | undefined, down: Set<string>) {
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
export async function disconnectLogins(
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
