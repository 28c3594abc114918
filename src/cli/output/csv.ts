/** `-o csv`: RFC 4180, safe to open in a spreadsheet. */

import { isNumber } from "../../mcp/exact-json.js";
import { escapeText } from "../../redact.js";
import { type Column, cellOf, readPath } from "./value.js";
import type { FormatWriter, ObjectContext, WriterContext } from "./writer-types.js";

/**
 * A header of paths, then one record per item. Text that a spreadsheet would run as a formula gets a leading `'`;
 * otherwise a file or a pipe gets the text unchanged. On a terminal cells are escaped. `csvBom` begins it with a byte order mark,
 * without which Excel takes UTF-8 for the code page of the system.
 */
export function csvWriter({ io, columns, reveal, header, csvRaw, csvBom }: WriterContext): FormatWriter {
  const shown = io.stdout.isTTY ? escapeText : (text: string) => text;
  const guard = csvRaw ? (text: string) => text : guardFormula;
  const style = { reveal };
  const cell = (item: object, column: Column) => {
    const value = readPath(item, column.path);
    const text = shown(cellOf(value, column, style));
    return isNumber(value) ? text : guard(text);
  };
  let headed = !header;
  let mark = csvBom && !io.stdout.isTTY ? "\ufeff" : "";
  const print = async (items: readonly object[]) => {
    const rows = items.map((item) => columns.map((column) => cell(item, column)));
    if (!headed) rows.unshift(columns.map(({ path }) => guard(shown(path))));
    headed = true;
    if (rows.length === 0) return;
    const text = mark + toCsv(rows);
    mark = "";
    await io.stdout.write(text);
  };
  return {
    write: (items) => (items.length > 0 ? print(items) : Promise.resolve()),
    end: () => print([]),
  };
}

/** A header of paths, then one record. */
export function csvObject(_value: object, { io, reveal, fields }: ObjectContext): string {
  const shown = (text: string) => (io.stdout.isTTY ? escapeText(text) : text);
  const all = fields({ reveal });
  const row = all.map(({ text, numeric }) => (numeric ? shown(text) : guardFormula(shown(text))));
  return toCsv([all.map(({ path }) => guardFormula(shown(path))), row]);
}

// Spreadsheets skip blanks, quotes and invisible characters before a formula, and accept full-width signs.
const FORMULA = /^[\s'"\p{Cc}\p{Cf}]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/u;

/** Adds a leading `'` to text that a spreadsheet would read as a formula. Removing it restores the text. */
export function guardFormula(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

/** Rows as RFC 4180 records, each ended by CRLF. */
export function toCsv(rows: readonly (readonly string[])[]): string {
  // A record of one empty cell would be an empty line, which readers skip.
  const empty = rows[0]?.length === 1 ? '""' : "";
  const field = (text: string) => (QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text || empty);
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

const QUOTED = /[",\r\n]/;
