import { escapeText } from "../../../../redact.js";

/** Text that is HTML already. Only {@link html} and {@link trusted} make it. */
export interface Markup {
  readonly markup: string;
}

/** What a template takes: text and numbers are escaped, markup stands as it is. */
export type Part = string | number | Markup | readonly Part[];

/**
 * HTML in which every text that is put in is escaped: for the browser, and what is invisible or turns the direction of
 * writing for people. Such text stands between tags or in quoted attributes, and nowhere else.
 */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return {
    markup: strings.map((text, index) => text + (index < parts.length ? render(parts[index] ?? "") : "")).join(""),
  };
}

/** Markup that was made elsewhere, of nothing but our own words and numbers. */
export function trusted(markup: string): Markup {
  return { markup };
}

/** A text of the service's: its direction of writing stays its own affair. */
export function foreign(text: string): Markup {
  return html`<bdi>${text}</bdi>`;
}

function render(part: Part): string {
  if (typeof part === "string") return escapeHtml(part);
  if (typeof part === "number") return String(part);
  return "markup" in part ? part.markup : part.map(render).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return escapeText(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
