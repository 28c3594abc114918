/** The records view: a block of `key: value` lines per item, for narrow terminals and single objects. */

import { textWidth } from "../io/width.js";

/** One line of a record: its key and its value, both escaped. */
export type Field = readonly [key: string, value: string];

/** The lines of one record, values aligned. Nothing is cut. */
export function recordText(fields: readonly Field[], emphasise: (key: string) => string): string {
  const width = Math.max(0, ...fields.map(([key]) => textWidth(key))) + 1;
  const line = ([key, value]: Field) => `${emphasise(`${key}:`)}${" ".repeat(width - textWidth(key))}${value}\n`;
  return fields.map(line).join("");
}
