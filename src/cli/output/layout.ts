/**
 * Cells laid out in lines, in columns without borders, and what a cell has beside its text that takes no column: the colour
 * of a state, and its direction. Cells are escaped and fit their columns.
 */

import type { Colors } from "../io/stream.js";
import { textWidth } from "../io/width.js";
import type { Column } from "./value.js";

const BORDERS = ["top", "bottom", "left", "right", "mid"].flatMap((side) => [
  side,
  ...["mid", "left", "right"].map((part) => `${side}-${part}`),
]);

/**
 * One row of a long list as a line, which a stream can print before it knows the next row.
 *
 * @param paint adds what takes no column to the cell at an index, such as a colour
 */
export function rowText(
  cells: readonly string[],
  widths: readonly number[],
  paint = (cell: string, _index: number) => cell,
): string {
  const padded = cells.map(
    (cell, index) => paint(cell, index) + " ".repeat(Math.max(0, (widths[index] ?? 0) - textWidth(cell))),
  );
  return padded.join(" ".repeat(GAP)).trimEnd();
}

/** All rows of a bounded table as lines, drawn by cli-table3: its time grows with the square of the rows. */
export async function tableText(rows: readonly (readonly string[])[], gap = GAP): Promise<string> {
  const { Table } = await import("#packages/cli-table3");
  const table = new Table({
    chars: { ...Object.fromEntries(BORDERS.map((name) => [name, ""])), middle: " ".repeat(gap) },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [], compact: true },
  });
  table.push(...rows.map((row) => [...row]));
  return table.toString().replace(/ +$/gm, "");
}

/** The widths of the columns of a table on a terminal. */

/** The blanks between two columns. */
const GAP = 2;

/** The widths of a column: `natural` shows every cell whole, `minimum` is the least useful one. */
export interface ColumnWidths {
  natural: number;
  minimum: number;
}

/** The widths of the columns; `undefined` if they do not all fit. */
export function fitColumns(columnWidths: readonly ColumnWidths[], available: number): number[] | undefined {
  const least = columnWidths.map(({ minimum }) => minimum);
  if (sumWidths(least) > available) return undefined;
  return growColumns(
    least,
    columnWidths.map(({ natural }) => natural),
    available,
  );
}

/** Distributes the remaining space to the columns that need more, the narrowest first. */
export function growColumns(widths: readonly number[], natural: readonly number[], available: number): number[] {
  const wanted = widths.map((width, index) => Math.max(width, natural[index] ?? 0));
  if (sumWidths(wanted) <= available) return wanted;
  const grown = [...widths];
  for (let spare = available - sumWidths(widths); spare > 0; spare -= 1) {
    const needy = grown.reduce<number | undefined>((best, width, index) => {
      if (width >= (wanted[index] ?? 0)) return best;
      return best === undefined || width < (grown[best] ?? 0) ? index : best;
    }, undefined);
    if (needy === undefined) break;
    grown[needy] = (grown[needy] ?? 0) + 1;
  }
  return grown;
}

function sumWidths(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP * Math.max(0, widths.length - 1);
}

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
export function createPainter(columns: readonly Column[], colors: Colors): (cell: string, index: number) => string {
  return (cell, index) => {
    const isState = columns[index]?.path === "status";
    const color = isState && Object.hasOwn(COLORS, cell) ? COLORS[cell] : undefined;
    return color === undefined ? isolate(cell) : colors[color](cell);
  };
}
