import stringWidth from "string-width";

/** The width of text in terminal columns. The text must have passed `escapeText`. */

// ASCII, Latin letters, dashes, quotes, the ellipsis and box drawing: one column each, and no need for the data of Intl.
const NARROW = /^[\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027\u2500-\u257f]*$/;
let segmenter: Intl.Segmenter | undefined;

/** The width of one line of text in terminal columns: 2 for wide characters and emoji, 0 for combining marks. */
export function textWidth(text: string): number {
  return NARROW.test(text) ? text.length : stringWidth(text);
}

/** The text cut to at most `width` columns, with a final `…` if it is cut. */
export function cutText(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  if (NARROW.test(text)) return width < 1 ? "" : `${text.slice(0, width - 1)}…`;
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
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

/** Text broken at its blanks into lines of at most `width` columns; a longer word gets its own line. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line === "") line = word;
    else if (textWidth(line) + 1 + textWidth(word) <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}
