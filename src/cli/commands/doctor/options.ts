import type { AgentFlags } from "../../agent-flags.js";
import type { OutputFlags } from "../../flags/output.js";

/** What `doctor` was told. */
export interface DoctorFlags extends AgentFlags, OutputFlags {
  url?: string;
  online?: boolean;
}
