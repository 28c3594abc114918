/** How many columns of a terminal a text takes. Texts must have passed `escapeText`. */

import stringWidth from "string-width";

const ASCII = /^[\x20-\x7e]*$/;
const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

/** The width of one line of text in terminal columns: 2 for wide characters and emoji, 0 for combining marks. */
export function textWidth(text: string): number {
  return ASCII.test(text) ? text.length : stringWidth(text);
}

/** The text cut to at most `width` columns, with `…` as its last one where something is missing. */
export function cutText(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    const next = used + textWidth(segment);
    if (next > width - 1) break;
    kept += segment;
    used = next;
  }
  return width < 1 ? "" : `${kept}…`;
}

/** The text filled with blanks to `width` columns. */
export function padText(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}
