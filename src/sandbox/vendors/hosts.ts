import type { ServerShape } from "./shape.js";

const ORIGIN = /https:\/\/[\w.-]+(?::\d+)?/g;

/** The recorded origins of a shape, that of the MCP server first. Scopes may look like addresses, but have no server. */
export function originsOf({ server, documents }: ServerShape): readonly string[] {
  const text = JSON.stringify(documents, (key, value: unknown) => (key === "scopes_supported" ? undefined : value));
  return [...new Set([server, text].flatMap((one) => one.match(ORIGIN) ?? []))];
}

/** Puts other origins in the place of the recorded ones. */
export type Relocate = <T>(value: T) => T;

/** A function that does so in a text, and in all texts and names of an object or a list. */
export function relocation(origins: ReadonlyMap<string, string>): Relocate {
  const text = (value: string) => value.replaceAll(ORIGIN, (origin) => origins.get(origin) ?? origin);
  return (value) => (value === undefined ? value : JSON.parse(text(JSON.stringify(value))));
}
