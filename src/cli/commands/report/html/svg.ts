import { html, type Markup } from "./markup.js";

/** A picture with its text alternative. */
export interface Picture {
  /** Unique within the page. */
  id: string;
  title: string;
  description: string;
  width: number;
  height: number;
  className: string;
}

/** An SVG for a page without scripts and inline styles; colours are the page's custom properties. */
export function drawPicture(
  { id, title, description, width, height, className }: Picture,
  shapes: readonly Markup[],
): Markup {
  return html`<svg class="${className}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-text"><title id="${id}-title">${title}</title><desc id="${id}-text">${description}</desc>${shapes}</svg>`;
}

/** A coordinate, to a tenth of a pixel. */
export function rounded(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}
