import type { AgentFlags } from "../../flags/agent.js";
import type { TokenTarget } from "./target.js";

/** Options of `exec`. */
export interface ExecFlags extends Omit<AgentFlags, "output"> {
  url: string;
  /** The operands after the URL; they end with the words after `--`. */
  command: string[];
  as?: TokenTarget;
  minTtl?: number;
  /** Undefined masks each stream that is not a terminal. */
  mask?: boolean;
}
