import { isNumber } from "../../mcp/json-rpc.js";
import { escapeText } from "../../redact.js";
import { type Column, cellText, formatCell, readPath, stringifyItems } from "./value.js";
import type { FormatWriter, ObjectContext, WriterContext } from "./writer-types.js";

/** `-o csv`: RFC 4180, safe to open in a spreadsheet. */

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
    const text = shown(formatCell(value, column, style));
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
  return { write: (items) => (items.length > 0 ? print(items) : Promise.resolve()), end: () => print([]) };
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

/** `-o plain`, `-o id`, `-o ndjson` and `-o json`: lines for other programs. */

/** One item per line, its columns separated by tabs, never cut, without a header. */
export function plainWriter({ io, columns, reveal }: WriterContext): FormatWriter {
  const line = (item: object) => columns.map((column) => escapeText(cellText(item, column, { reveal }))).join("\t");
  return lineWriter(io, (items) => items.map(line).join("\n"));
}

/** A field a line: its path, a tab, its value. */
export function plainObject(_value: object, { fields, reveal }: ObjectContext): string {
  return fields({ reveal })
    .map(({ path, text }) => `${escapeText(path)}\t${escapeText(text)}\n`)
    .join("");
}

export function idWriter({ io, reveal }: WriterContext): FormatWriter {
  return lineWriter(io, (items) => items.map((item) => idText(item, reveal)).join("\n"));
}

export function idObject(value: object, { reveal }: ObjectContext): string {
  return `${idText(value, reveal)}\n`;
}

function idText(item: object, reveal: boolean): string {
  return escapeText(cellText(item, { path: "id", header: "ID" }, { reveal }));
}

export function ndjsonWriter({ io, paths, reveal }: WriterContext): FormatWriter {
  return lineWriter(io, (items) => stringifyItems(items, "\n", { reveal, paths }));
}

export function ndjsonObject(value: object, { reveal }: ObjectContext): string {
  return `${stringifyItems([value], "", { reveal })}\n`;
}

function lineWriter(io: WriterContext["io"], textOf: (items: readonly object[]) => string): FormatWriter {
  return { write: partWriter(io, (items) => `${textOf(items)}\n`) };
}

/** What is aimed at, so that most parts have at most 64 kB. */
const PART = 48 * 1024;

/** Writes items in parts: V8 keeps longer texts until it collects all of its memory, and a list would make hundreds of MB. */
function partWriter({ stdout }: WriterContext["io"], textOf: (items: readonly object[]) => string) {
  let count = 16;
  return async (items: readonly object[]) => {
    for (let at = 0; at < items.length; ) {
      const part = items.slice(at, at + count);
      const text = textOf(part);
      at += part.length;
      count = Math.max(1, Math.floor((part.length * PART) / text.length));
      await stdout.write(text);
    }
  };
}

/**
 * One array, streamed: indented on a terminal, one item per line elsewhere. An aborted array stays open, so that no
 * parser accepts it as the whole list.
 */
export function jsonWriter({ io, paths, reveal }: WriterContext): FormatWriter {
  const indent = io.stdout.isTTY ? 2 : 0;
  const lineBreak = indent ? "\n" : "";
  let open = false;
  return {
    write: partWriter(io, (items) => {
      const text = stringifyItems(items, ",\n", { reveal, paths, indent });
      const start = open ? ",\n" : `[${lineBreak}`;
      open = true;
      // A line break inside a string is escaped: every "\n" here is between tokens.
      return start + (indent ? `  ${text.replaceAll("\n", "\n  ")}` : text);
    }),
    end: () => io.stdout.write(open ? `${lineBreak}]\n` : "[]\n"),
    async abort() {
      if (open) await io.stdout.write("\n");
    },
  };
}

/** One object: indented on a terminal, on one line elsewhere. */
export function jsonObject(value: object, { io, reveal }: ObjectContext): string {
  return `${stringifyItems([value], "", { reveal, indent: io.stdout.isTTY ? 2 : undefined })}\n`;
}
