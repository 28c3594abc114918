import type { AgentFlags } from "../../flags/agent.js";

/** Options of `request`. */
export interface RequestFlags extends Omit<AgentFlags, "output"> {
  url: string;
  method?: string;
  header?: string[];
  data?: string;
  include?: boolean;
}
