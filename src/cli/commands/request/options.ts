import type { AgentFlags } from "../../agent-flags.js";

/** What `request` was told. */
export interface RequestFlags extends Omit<AgentFlags, "output"> {
  url: string;
  method?: string;
  header?: string[];
  data?: string;
  include?: boolean;
}
