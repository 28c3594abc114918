/** What a cell has on a terminal beside its text, and that takes no column: the colour of a state, and its direction. */

import type { Colors } from "../io/stream.js";
import type { Column } from "./value.js";

/** The colour of each state. Its name is printed too, so the colour is never the only sign. */
const COLORS: Readonly<Record<string, "green" | "red" | "yellow" | "dim">> = {
  active: "green",
  failed: "red",
  revoked: "red",
  expired: "yellow",
  paused: "yellow",
  archived: "dim",
};

// Hebrew, Arabic and their neighbours: a strong right-to-left character reorders what follows it on its line.
const makeRightToLeft = () => /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
// Made at its first use: reading a pattern of Unicode properties takes milliseconds.
let rightToLeft: RegExp | undefined;
const ASCII = /^[\0-\x7f]*$/;
const FIRST_STRONG_ISOLATE = "\u2068";
const POP_ISOLATE = "\u2069";

/** Isolates text with right-to-left letters, so that the columns after it stay in their order. */
export function isolate(text: string): string {
  if (ASCII.test(text)) return text;
  rightToLeft ??= makeRightToLeft();
  return rightToLeft.test(text) ? `${FIRST_STRONG_ISOLATE}${text}${POP_ISOLATE}` : text;
}

/** Paints the cell of a column; a heading is none of the states. */
export function painter(columns: readonly Column[], colors: Colors): (cell: string, index: number) => string {
  return (cell, index) => {
    const isState = columns[index]?.path === "status";
    const color = isState && Object.hasOwn(COLORS, cell) ? COLORS[cell] : undefined;
    return color === undefined ? isolate(cell) : colors[color](cell);
  };
}
