import type { AgentContext } from "./agent-context.js";
import type { StatusOptions } from "./agent-options.js";
import { bindUsedClient } from "./client/issuer-binding.js";
import type { Grant } from "./grant/grant.js";
import { describeLogin, type LoginStatus } from "./login/login-status.js";
import { type RemoteLogout, revokeRemotely } from "./token/revocation.js";

/** Removes a stored login, then revokes its tokens at the issuer. */
export async function removeLogin(
  agent: AgentContext,
  grant: Grant,
  signal: AbortSignal | undefined,
): Promise<RemoteLogout> {
  // A login from before bindings were stored is the only record of its client's issuer.
  await bindUsedClient(agent.loginContext(grant, grant), grant);
  await agent.options.store.remove(grant);
  const { client, privateKey, http } = agent.callOf(grant);
  return revokeRemotely({ ...grant, client }, http, signal, privateKey);
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
