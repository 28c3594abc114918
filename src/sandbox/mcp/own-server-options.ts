/** What an MCP server of your own is created with. */
export interface McpServerContext {
  /** The module `@modelcontextprotocol/server` that the sandbox runs on: create the server with its classes. */
  readonly sdk: object;
  /** `modern`: the server of one request (revision 2026-07-28). `legacy`: the server of a session (earlier ones). */
  readonly era: "modern" | "legacy";
  /** Announces changes to the subscriptions of revision 2026-07-28. */
  readonly notify: McpNotifier;
}

/** Announces changes of an MCP server to its subscribers. */
export interface McpNotifier {
  /** The list of tools has changed. */
  toolsChanged(): void;
  /** The list of prompts has changed. */
  promptsChanged(): void;
  /** The list of resources has changed. */
  resourcesChanged(): void;
  /** The content of a resource has changed. */
  resourceUpdated(uri: string): void;
}

/** Creates an MCP server: an `McpServer` or a `Server` of {@link McpServerContext.sdk}. */
export type CreateMcpServer = (context: McpServerContext) => object;
