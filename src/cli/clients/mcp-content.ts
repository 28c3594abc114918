import { escapeText } from "../../redact.js";

/** A result as text: its texts, and a word for each part that is no text. */
export function textOf(result: Record<string, unknown>): string {
  const parts = Array.isArray(result["content"]) ? (result["content"] as Record<string, unknown>[]) : [];
  const lines = parts.map((part) =>
    part["type"] === "text" && typeof part["text"] === "string" ? part["text"] : `(${String(part["type"])})`,
  );
  return `${lines.flatMap((text) => text.split("\n").map(escapeText)).join("\n")}\n`;
}
