// Generated from src/cli/commands/*/command.ts by scripts/generate.mjs. Do not edit.

/** Each word that a command line may begin with, and the bundle of its commands. */
export const BUNDLE_OF_WORD: ReadonlyMap<string, "lists" | "tokens" | "settings" | "all"> = new Map([
  ["api", "lists"],
  ["broker", "tokens"],
  ["client", "all"],
  ["commands", "all"],
  ["completion", "all"],
  ["config", "settings"],
  ["demo", "all"],
  ["discover", "tokens"],
  ["doctor", "all"],
  ["exchange", "tokens"],
  ["exec", "tokens"],
  ["help", "all"],
  ["introspect", "tokens"],
  ["devices", "lists"],
  ["pools", "lists"],
  ["domains", "lists"],
  ["login", "tokens"],
  ["logout", "tokens"],
  ["mcp", "tokens"],
  ["profile", "settings"],
  ["request", "tokens"],
  ["sandbox", "all"],
  ["schema", "all"],
  ["status", "tokens"],
  ["store", "all"],
  ["token", "tokens"],
]);

/** Words that the help does not list. */
export const HIDDEN_WORDS: readonly string[] = ["complete", "flags", "exit-codes", "environment", "agents", "formats", "receive-callback"];
