import type { AgentFlags } from "../../flags/agent.js";
import type { TokenTarget } from "./target.js";

/** What `exec` was told. */
export interface ExecFlags extends Omit<AgentFlags, "output"> {
  url: string;
  /** What the parser left over after the address; the words after `--` are its end. */
  command: string[];
  as?: TokenTarget;
  minTtl?: number;
  /** Undefined: mask each stream that is no terminal. */
  mask?: boolean;
}
