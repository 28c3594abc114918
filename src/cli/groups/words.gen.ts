// Generated from src/cli/commands/*/command.ts by scripts/generate.mjs. Do not edit.

export const BUNDLE_OF_WORD: ReadonlyMap<string, "lists" | "tokens"> = new Map([
  ["api", "lists"],
  ["broker", "tokens"],
  ["discover", "tokens"],
  ["exchange", "tokens"],
  ["exec", "tokens"],
  ["introspect", "tokens"],
  ["devices", "lists"],
  ["pools", "lists"],
  ["domains", "lists"],
  ["login", "tokens"],
  ["logout", "tokens"],
  ["mcp", "tokens"],
  ["request", "tokens"],
  ["status", "tokens"],
  ["token", "tokens"],
  ["tree", "lists"],
]);
