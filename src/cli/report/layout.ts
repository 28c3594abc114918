import { textWidth } from "../output/width.js";

/** Text broken at its blanks into lines of at most `width` columns; a longer word has a line of its own. */
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

/** Two blocks of lines beside each other: the left one filled up to `width` columns, then `gap` blanks. */
export function sideBySide(left: readonly string[], right: readonly string[], width: number, gap: number): string[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const begin = left[index] ?? "";
    const fill = " ".repeat(Math.max(0, width - textWidth(begin)) + gap);
    return `${begin}${fill}${right[index] ?? ""}`.trimEnd();
  });
}
