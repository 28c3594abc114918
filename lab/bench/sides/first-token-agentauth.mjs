import { AgentClient } from "../../../dist/index.js";
import { memoryStore } from "../../../dist/store/index.js";
import { login, TOOLS_LIST } from "../lib/login.mjs";

/** Our client, with automatic consent. */
export function open(mcpUrl) {
  const agent = new AgentClient({ store: memoryStore(), login });
  return {
    async firstCall() {
      const response = await agent.fetch(mcpUrl, TOOLS_LIST);
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      await response.text();
    },
    login: () => agent.login(mcpUrl),
    refresh: () => agent.token(mcpUrl, { forceRefresh: true }),
  };
}
