/** `-o table` and `-o wide`, and the records for a narrow terminal. */

import { escapeText } from "../../redact.js";
import { cutText, textWidth } from "../io/width.js";
import { type ColumnWidths, createPainter, fitColumns, growColumns, rowText, tableText } from "./layout.js";
import { type CellStyle, type Column, cellText } from "./value.js";
import type { FormatWriter, ObjectContext, ObjectField, WriterContext } from "./writer-types.js";

/** Rows measured together. The first ones decide the widths. */
const CHUNK = 200;
/** A column of long text stays readable down to this width. */
const NARROW = 6;
/** With fewer columns than a title and an id, a table says less than records. */
const LEAST_COLUMNS = 2;

/**
 * Rows under a header. With `fit`, the table fits the terminal: long cells are cut, and stderr reports that once; where
 * not every column fits, the least important ones of `screenColumns` are left out, which stderr reports, and other items are
 * printed as records. In a pipe nothing is cut.
 * cli-table3 draws a bounded table; the rows of a long list are printed as they arrive.
 */
export function tableWriter(context: WriterContext, { fit }: { fit: boolean }): FormatWriter {
  const { io } = context;
  const columns = (fit && io.stdout.isTTY ? context.screenColumns : undefined) ?? context.columns;
  const available = fit && io.stdout.isTTY ? io.stdout.columns : Number.POSITIVE_INFINITY;
  const style = { ...cellStyle(context), short: true };
  const print = rowPrinter({ ...context, columns }, available);
  let pending: string[][] = [];
  const flush = async (isEnd: boolean) => {
    if (pending.length === 0) return;
    const rows = pending;
    pending = [];
    await io.stdout.write(await print.rows(rows, isEnd));
  };
  const finish = async () => {
    await flush(true);
    print.reportMissing();
  };
  return {
    async write(items) {
      for (const item of items) {
        pending.push(columns.map((column) => shownCell(cellText(item, column, style))));
        if (pending.length >= CHUNK) await flush(false);
      }
    },
    end: finish,
    abort: finish,
  };
}

/** One object as `key: value` lines, in its parts on a terminal. */
export function recordObject(_value: object, context: ObjectContext): string {
  const { bold } = context.io.stdout.colors;
  const lines = (fields: readonly ObjectField[]) =>
    recordText(
      fields.map(({ path, text }) => [escapeText(path), shownCell(text)]),
      bold,
    );
  const fields = context.fields(cellStyle(context));
  if (context.groups === undefined || !context.io.stdout.isTTY) return lines(fields);
  const left = new Map(fields.map((field) => [field.path, field]));
  const parts = context.groups.map(({ heading, paths }) => {
    const found = paths.flatMap((path) => takeFields(left, path));
    return { heading, found };
  });
  return [...parts, { heading: "More", found: [...left.values()] }]
    .filter(({ found }) => found.length > 0)
    .map(({ heading, found }) => `${heading === undefined ? "" : `${bold(heading)}\n`}${lines(found)}`)
    .join("\n");
}

/** Takes out the fields of a path; those of `last_seen.*` without what they share, which the heading says. */
function takeFields(left: Map<string, ObjectField>, path: string): ObjectField[] {
  const shared = path.endsWith(".*") ? path.slice(0, -1) : undefined;
  const found = [...left.values()].filter((field) =>
    shared === undefined ? field.path === path : field.path.startsWith(shared),
  );
  for (const field of found) left.delete(field.path);
  return found.map((field) => ({ ...field, path: field.path.slice(shared?.length ?? 0) }));
}

const ASCII = /^[\x20-\x7e]*$/;

/** A cell of a table or a record: escaped, with `-` for no value. */
export function shownCell(text: string): string {
  if (ASCII.test(text)) return text || "-";
  // A leading combining mark would attach to the neighbouring cell.
  return escapeText(text).replace(/^\p{M}/u, "\u25cc$&") || "-";
}

/** Readable cells on a terminal, exact cells elsewhere. */
function cellStyle({ io, reveal, now }: Pick<WriterContext, "io" | "reveal" | "now">): CellStyle {
  return { reveal, now: io.stdout.isTTY ? now : undefined, listSeparator: ", " };
}

function rowPrinter({ io, columns, screenColumns, header, bounded }: WriterContext, available: number) {
  const headings = columns.map((column) => escapeText(column.header));
  const { bold } = io.stdout.colors;
  const isScreen = io.stdout.isTTY;
  const paint = isScreen ? createPainter(columns, io.stdout.colors) : undefined;
  // Undefined before the first rows, empty for records.
  let widths: number[] | undefined;
  let cut = false;
  const fitCell = (cell: string, width: number) => {
    const fitted = cutText(cell, width);
    cut ||= fitted !== cell;
    return fitted;
  };
  const firstWidths = (measured: readonly number[]) => {
    const wanted = columnWidths(columns, measured, header ? headings : []);
    const least = screenColumns === columns ? LEAST_COLUMNS : columns.length;
    for (let count = columns.length; count >= least; count--) {
      const fitted = fitColumns(wanted.slice(0, count), available);
      if (fitted) return fitted;
    }
    return [];
  };
  const rows = async (cells: readonly string[][], isEnd: boolean): Promise<string> => {
    const first = widths === undefined;
    const measured = columns.map((_, index) => Math.max(...cells.map((row) => textWidth(row[index] ?? ""))));
    widths = widths ? growColumns(widths, measured, available) : firstWidths(measured);
    if (widths.length === 0) return records(cells, first);
    const lines = first && header ? [headings, ...cells] : cells;
    const fitted = widths;
    // In a pipe the columns grow with their cells.
    const fits = available === Number.POSITIVE_INFINITY;
    const shown = fits ? lines : lines.map((row) => fitted.map((width, index) => fitCell(row[index] ?? "", width)));
    const isWhole = bounded && first && isEnd;
    const text = isWhole ? await tableText(shown) : shown.map((row) => rowText(row, fitted, paint)).join("\n");
    return `${first && header ? text.replace(/^.*/, bold) : text}\n`;
  };
  const records = (cells: readonly string[][], first: boolean) => {
    const blocks = cells.map((row) =>
      recordText(
        columns.map(({ path }, i) => [escapeText(path), row[i] ?? ""]),
        bold,
      ),
    );
    return `${first ? "" : "\n"}${blocks.join("\n")}`;
  };
  const reportMissing = () => {
    const missing = widths?.length ? headings.slice(widths.length) : [];
    if (missing.length > 0) io.say(`no room for ${missing.join(", ")}; -o wide shows every column`);
    if (cut) io.say("cells that end with … are cut; -o wide and -o plain show them whole");
  };
  return { rows, reportMissing };
}

function columnWidths(
  columns: readonly Column[],
  measured: readonly number[],
  headings: readonly string[],
): ColumnWidths[] {
  return columns.map(({ path, kind, least }, index) => {
    const heading = textWidth(headings[index] ?? "");
    const natural = Math.max(heading, measured[index] ?? 0);
    // Half an id or half a number is of no use.
    const whole = path === "id" || (kind !== undefined && kind !== "text" && kind !== "list");
    return { natural, minimum: whole ? natural : Math.min(natural, Math.max(heading, least ?? NARROW)) };
  });
}

/** A key of a record and its value, both escaped. */
type RecordField = readonly [key: string, value: string];

/** The lines of one record, values aligned. Nothing is cut. */
function recordText(fields: readonly RecordField[], emphasise: (key: string) => string): string {
  const width = Math.max(0, ...fields.map(([key]) => textWidth(key))) + 1;
  const line = ([key, value]: RecordField) => `${emphasise(`${key}:`)}${" ".repeat(width - textWidth(key))}${value}\n`;
  return fields.map(line).join("");
}
