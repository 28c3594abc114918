import { escapeHtml } from "../../../redact.js";

/** Text that is HTML already. Only {@link html} and {@link trusted} create it. */
export interface Markup {
  readonly markup: string;
}

/** A value in a template: text and numbers are escaped, markup is not. */
export type Part = string | number | Markup | readonly Part[];

/**
 * HTML in which every inserted text is escaped: HTML characters for the browser, and invisible and bidirectional
 * characters for readers. Insert text only between tags or in quoted attributes.
 */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return {
    markup: strings.map((text, index) => text + (index < parts.length ? render(parts[index] ?? "") : "")).join(""),
  };
}

/** Markup from elsewhere, made only of our own text and numbers. */
export function trusted(markup: string): Markup {
  return { markup };
}

/** Text from the service, isolated so that its writing direction does not affect its neighbours. */
export function isolated(text: string): Markup {
  return html`<bdi>${text}</bdi>`;
}

function render(part: Part): string {
  if (typeof part === "string") return escapeHtml(part);
  if (typeof part === "number") return String(part);
  return "markup" in part ? part.markup : part.map(render).join("");
}
