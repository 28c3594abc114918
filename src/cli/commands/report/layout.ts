import { textWidth } from "../../io/width.js";

/** Two blocks of lines side by side: the left one padded to `width` columns, then `gap` blanks. */
export function sideBySide(left: readonly string[], right: readonly string[], width: number, gap: number): string[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const begin = left[index] ?? "";
    const fill = " ".repeat(Math.max(0, width - textWidth(begin)) + gap);
    return `${begin}${fill}${right[index] ?? ""}`.trimEnd();
  });
}
