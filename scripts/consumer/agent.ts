// Type-checks the agent client and its Node parts in a strict program for Node.
import { type AccessToken, AgentClient, type GrantStore, type LoginMethod } from "agentauth";
import { fileStore, terminalLogin } from "agentauth/node";
import { memoryStore } from "agentauth/store";

const stores: GrantStore[] = [memoryStore(), fileStore("/nowhere")];
const login: LoginMethod = terminalLogin({ say: () => {}, env: process.env, input: process.stdin });
const [store = memoryStore()] = stores;
const agent = new AgentClient({ store, login, clientName: "A strict program", flow: "device" });

export async function tokenFor(mcpUrl: string): Promise<[string, Date | undefined]> {
  const token: AccessToken = await agent.token(mcpUrl, { scope: "reports:read", minTtl: 30 });
  return [token.value, token.expiresAt];
}

export const fetchLike: typeof globalThis.fetch = (input, init) => agent.fetch(input, init);

// @ts-expect-error an agent needs a store
new AgentClient({ login });
