import { stringify } from "#packages/yaml";
import type { McpHost } from "./host.js";

/** The text of a snippet in the host's language, ending in a line break. */
export function snippetText(language: McpHost["language"], snippet: object): string {
  switch (language) {
    case "json":
      return `${JSON.stringify(snippet, null, 2)}\n`;
    case "yaml":
      return stringify(snippet, { lineWidth: 0 });
    case "toml":
      return tomlTables([], snippet).join("\n");
  }
}

/** Each object with a value that is not an object is a table; keys are bare, like the names of servers. */
function tomlTables(path: readonly string[], table: object): string[] {
  const entries = Object.entries(table) as [string, unknown][];
  const values = entries.filter(([, value]) => !isTable(value)).map(([key, value]) => `${key} = ${tomlValue(value)}\n`);
  const own = values.length > 0 ? [`[${path.join(".")}]\n${values.join("")}`] : [];
  const inner = entries.flatMap(([key, value]) => (isTable(value) ? tomlTables([...path, key], value) : []));
  return [...own, ...inner];
}

function isTable(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A JSON string is a TOML string too, except for the one control character that JSON does not escape. */
function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
