import type { AgentFlags } from "../../flags/agent.js";

/** Where the command gets the token: in a variable, or in a file that a variable names. */
export interface TokenTarget {
  readonly kind: "env" | "file";
  /** The variable. */
  readonly name: string;
}

/** Options of `exec`. */
export interface ExecFlags extends Omit<AgentFlags, "output"> {
  /** The first operand: a word of the command if there is a broker. */
  url?: string;
  /** The operands after the URL; they end with the words after `--`. */
  command: string[];
  /** Servers that the command reaches by a broker. */
  broker?: string[];
  /** Where the broker listens. */
  listen?: string;
  /** Default: the variable AGENTAUTH_TOKEN. */
  as?: TokenTarget;
  minTtl?: number;
  /** Undefined masks each stream that is not a terminal. */
  mask?: boolean;
}
