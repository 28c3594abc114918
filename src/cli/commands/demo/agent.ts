import { VERSION } from "../../../http/user-agent.js";
import { terminalLogin } from "../../../login/terminal.js";
import { openMcp } from "../../../mcp/session.js";
import { AgentClient } from "../../../oauth/agent.js";
import { fileStore } from "../../../store/file/file.js";
import { textOf } from "../../clients/mcp-content.js";

/** The client name of the demo's agent. */
export const DEMO_CLIENT = "agentauth demo";

/** A client whose user logs in through a "browser" that follows the redirects. */
export interface DemoAgent {
  client: AgentClient;
  /** Another client with the same store. */
  sharing: () => AgentClient;
}

/** The demo's agent. @param home the folder of its login */
export function demoAgent(home: string): DemoAgent {
  const login = terminalLogin({
    say: () => {},
    env: {},
    browser: "demo",
    openBrowser: async (url) => {
      await (await fetch(url)).text();
      return "opened";
    },
  });
  const store = fileStore(home);
  const sharing = () => new AgentClient({ store, login, clientName: DEMO_CLIENT });
  return { client: sharing(), sharing };
}

/** The answer of the MCP server's tool `whoami` for the agent's token. */
export async function callWhoami(agent: AgentClient, mcpUrl: string, signal: AbortSignal): Promise<string> {
  const fetch: typeof globalThis.fetch = (input, init) => agent.fetch(input as string | URL | Request, init);
  const session = await openMcp(mcpUrl, { fetch, name: "agentauth", version: VERSION, signal });
  try {
    return textOf(await session.call("whoami", {}, signal)).trimEnd();
  } finally {
    await session.close();
  }
}
