import type { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { StdioWriter } from "./stdio-writer.js";

/** The two sides of an `McpProxy`, and its callbacks. */
export interface McpProxyOptions {
  url: string;
  host: StdioWriter;
  http: StreamableHTTPClientTransport;
  /** Masks secrets in a text that comes from elsewhere. */
  mask(text: string): string;
  /** Hears what went wrong. */
  onTrouble(text: string): void;
  /** Hears of each message that passes, without what is in it. */
  onStep(text: string): void;
  /** Hears that the host's `initialize` was refused for a reason that asking again does not mend. */
  onRefused(): void;
}
