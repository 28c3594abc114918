import type { AgentFlags } from "../../flags/agent.js";
import type { OutputFlags } from "../../flags/output.js";

/** Options of `doctor`. */
export interface DoctorFlags extends AgentFlags, OutputFlags {
  url?: string;
  online?: boolean;
}
