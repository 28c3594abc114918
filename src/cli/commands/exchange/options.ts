import type { AgentFlags } from "../../flags/agent.js";

/** The values of `exchange --format`. */
export const EXCHANGE_FORMATS = ["raw", "header", "headers-json", "json", "env"] as const;

/** Options of `exchange`. */
export interface ExchangeFlags extends Omit<AgentFlags, "output" | "resource"> {
  url: string;
  audience?: string[];
  resource?: string[];
  subjectTokenFile?: string;
  subjectTokenType?: string;
  actorTokenFile?: string;
  actorTokenType?: string;
  requestedTokenType?: string;
  format?: (typeof EXCHANGE_FORMATS)[number];
}
