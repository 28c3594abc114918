import type { AgentFlags } from "../../flags/agent.js";

/** Where the command gets the token: in a variable, or in a file that a variable names. */
export interface TokenTarget {
  readonly kind: "env" | "file";
  /** The variable. */
  readonly name: string;
}

/** Options of `exec`. */
export interface ExecFlags extends Omit<AgentFlags, "output"> {
  url: string;
  /** The operands after the URL; they end with the words after `--`. */
  command: string[];
  /** Default: the variable AGENTAUTH_TOKEN. */
  as?: TokenTarget;
  minTtl?: number;
  /** Undefined masks each stream that is not a terminal. */
  mask?: boolean;
}

/** Reads `env:NAME`, `file:NAME` or `NAME`, which is `env:NAME`; undefined for anything else. */
export function parseTarget(value: string): TokenTarget | undefined {
  const [, kind, name] = /^(?:(env|file):)?([A-Za-z_]\w*)$/.exec(value) ?? [];
  // A kind without a name is a mistake.
  if (name === undefined || (kind === undefined && (name === "env" || name === "file"))) return undefined;
  return { kind: kind === "file" ? "file" : "env", name };
}
