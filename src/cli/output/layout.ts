/** Cells laid out in lines, in columns without borders. Cells are escaped and fit their columns. */

import { textWidth } from "../io/width.js";
import { GAP } from "./fit.js";

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
