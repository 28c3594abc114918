import type { AgentFlags } from "../../flags/agent.js";
import type { OutputFlags } from "../../flags/output.js";

/** Options of `mcp tools` and `mcp call`. */
export interface McpFlags extends AgentFlags, OutputFlags {
  url: string;
  tool: string;
  args?: string;
}

/** Options of `mcp proxy`. */
export interface ProxyFlags extends Omit<AgentFlags, "output"> {
  url: string;
}
