import type { AgentFlags } from "../../flags/agent.js";
import type { OutputFlags } from "../../flags/output.js";

/** What `mcp tools` or `mcp call` was told. */
export interface McpFlags extends AgentFlags, OutputFlags {
  url: string;
  tool: string;
  args?: string;
}

/** What `mcp proxy` was told. */
export interface ProxyFlags extends Omit<AgentFlags, "output"> {
  url: string;
}
