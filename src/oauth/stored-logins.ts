import { isAgentAuthError } from "../errors.js";
import type { AgentContext } from "./agent-context.js";
import type { StatusOptions } from "./agent-options.js";
import { bindUsedClient } from "./client/issuer-binding.js";
import { refreshLease } from "./grant/refresh.js";
import { describeLogin, type LoginStatus } from "./login-status.js";
import type { Grant } from "./model/grant.js";
import type { GrantStore } from "./model/grant-store.js";
import type { Lease } from "./model/lease.js";
import { type RemoteLogout, revokeRemotely } from "./token/revocation.js";

/** For how long a logout waits to record it. */
const SPEND_MS = 1000;

/** Removes a stored login, then revokes its tokens at the issuer. */
export async function removeAndRevoke(
  agent: AgentContext,
  grant: Grant,
  signal: AbortSignal | undefined,
): Promise<RemoteLogout> {
  // A login from before bindings were stored is the only record of its client's issuer.
  await bindUsedClient(agent.loginContext(grant, grant), grant);
  const { events } = agent;
  const { store } = agent.options;
  await store.remove(grant);
  const { client, privateKey, http } = agent.callOf(grant);
  const revoked = revokeRemotely({ ...grant, client }, { http, events, signal, privateKey });
  const [outcome] = await Promise.all([revoked, markSpent(store, grant)]);
  return outcome;
}

/** Records that a login has ended, so that its record is recognized if it is put back. */
async function markSpent(store: GrantStore, grant: Grant): Promise<void> {
  const work = async (lease: Lease) => lease.spend?.();
  // The login is removed all the same; who is refreshing it finds it gone.
  const wait = { patienceMs: 0, signal: AbortSignal.timeout(SPEND_MS) };
  await store
    .lease(refreshLease(grant), work, { durationMs: SPEND_MS, refreshes: grant, once: true, ...wait })
    .catch((error) => {
      if (!isAgentAuthError(error)) throw error;
    });
}

/** Describes the stored logins, of one MCP server or of all. */
export async function listLogins(
  agent: AgentContext,
  mcpUrl: string | undefined,
  options: StatusOptions,
): Promise<LoginStatus[]> {
  const { store, loginHint } = agent.options;
  const key = mcpUrl === undefined ? undefined : agent.key(mcpUrl);
  // A login that cannot be read is an error if it is the requested one.
  if (key) await store.read(key);
  const filter = { server: key?.server, ...(!options.all && { profile: agent.profile }) };
  const grants = await store.list(filter, options.onUnusable);
  return grants
    .filter(({ account }) => !key || account === loginHint || !loginHint)
    .map((grant) => describeLogin(grant, agent.clock.epoch(), store.location));
}
