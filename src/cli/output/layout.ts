/** Cells laid out in a line by cli-table3. */

import { GAP } from "./fit.js";
import { textWidth } from "./width.js";

const NO_LINES = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
};

// A private-use character: escapeText lets none through, so that no cell can hold it.
const STAND_IN = "\ue000";
const STAND_INS = /\ue000( *)/g;

/**
 * A function that lays out the cells of one row as a line, two blanks between columns and none at the end. Cells are
 * escaped and no wider than their column.
 *
 * cli-table3 measures with an old table of widths, and its time grows with the square of the rows. So it draws a
 * single row of stand-ins, and in each row the cells take their places and the blanks after them that they need.
 */
export async function rowLayout(widths: readonly number[]): Promise<(cells: readonly string[]) => string> {
  const { default: Table } = await import("cli-table3");
  const table = new Table({
    chars: { ...NO_LINES, middle: " ".repeat(GAP) },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [], compact: true },
    colWidths: [...widths],
  });
  table.push(widths.map(() => STAND_IN));
  const drawn = table.toString();
  return (cells) => {
    let next = 0;
    const line = drawn.replace(STAND_INS, (_, blanks: string) => {
      const cell = cells[next++] ?? "";
      return cell + blanks.slice(textWidth(cell) - STAND_IN.length);
    });
    return line.trimEnd();
  };
}
