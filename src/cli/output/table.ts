/** `-o table` and `-o wide`, and the records for a narrow terminal. */

import { escapeText } from "../../redact.js";
import { cutText, textWidth } from "../io/width.js";
import { type ColumnWidths, fitColumns, growColumns } from "./fit.js";
import { rowText, tableText } from "./layout.js";
import { recordText } from "./records.js";
import { type CellStyle, type Column, cellText } from "./value.js";
import type { ObjectContext, Writer, WriterContext } from "./writer-types.js";

/** Rows measured together. The first ones decide the widths. */
const CHUNK = 200;
/** A column of long text stays readable down to this width. */
const NARROW = 6;

/**
 * Rows under a header. With `fit`, the table fits the terminal: long cells are cut, and stderr reports that once; if not
 * every column fits, items are printed as records, since a missing column would go unnoticed. In a pipe nothing is cut.
 * cli-table3 draws a bounded table; the rows of a long list are printed as they arrive.
 */
export function tableWriter(context: WriterContext, { fit }: { fit: boolean }): Writer {
  const { io, columns } = context;
  const available = fit && io.stdout.isTTY ? io.stdout.columns : Number.POSITIVE_INFINITY;
  const style = cellStyle(context);
  const print = rowPrinter(context, available);
  let pending: string[][] = [];
  const flush = async (isEnd: boolean) => {
    if (pending.length === 0) return;
    const rows = pending;
    pending = [];
    await io.stdout.write(await print.rows(rows, isEnd));
  };
  const finish = async () => {
    await flush(true);
    print.reportCutCells();
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

/** One object as `key: value` lines. */
export function recordObject(_value: object, context: ObjectContext): string {
  return recordText(
    context.fields(cellStyle(context)).map(({ path, text }) => [escapeText(path), shownCell(text)]),
    context.io.stdout.colors.bold,
  );
}

const ASCII = /^[\x20-\x7e]*$/;

/** A cell of a table or a record: escaped, with `-` for no value. */
export function shownCell(text: string): string {
  if (ASCII.test(text)) return text || "-";
  // A leading combining mark would attach to the neighbouring cell.
  return escapeText(text).replace(/^\p{M}/u, "\u25cc$&") || "-";
}

/** Readable cells on a terminal, exact cells elsewhere. */
export function cellStyle({ io, reveal, now }: Pick<WriterContext, "io" | "reveal" | "now">): CellStyle {
  return { reveal, now: io.stdout.isTTY ? now : undefined, listSeparator: ", " };
}

function rowPrinter({ io, columns, header, bounded }: WriterContext, available: number) {
  const headings = columns.map((column) => escapeText(column.header));
  const { bold } = io.stdout.colors;
  // Undefined before the first rows, empty for records.
  let widths: number[] | undefined;
  let cut = false;
  const fitCell = (cell: string, width: number) => {
    const fitted = cutText(cell, width);
    cut ||= fitted !== cell;
    return fitted;
  };
  const rows = async (cells: readonly string[][], isEnd: boolean): Promise<string> => {
    const first = widths === undefined;
    const measured = columns.map((_, index) => Math.max(...cells.map((row) => textWidth(row[index] ?? ""))));
    widths = widths
      ? growColumns(widths, measured, available)
      : (fitColumns(columnWidths(columns, measured, header ? headings : []), available) ?? []);
    if (widths.length === 0) return records(cells, first);
    const lines = first && header ? [headings, ...cells] : cells;
    const fitted = widths;
    // In a pipe the columns grow with their cells.
    const fits = available === Number.POSITIVE_INFINITY;
    const shown = fits ? lines : lines.map((row) => fitted.map((width, index) => fitCell(row[index] ?? "", width)));
    const isWhole = bounded && first && isEnd;
    const text = isWhole ? await tableText(shown) : shown.map((row) => rowText(row, fitted)).join("\n");
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
  const reportCutCells = () => {
    if (cut) io.say("cells that end with … are cut; -o wide and -o plain show them whole");
  };
  return { rows, reportCutCells };
}

function columnWidths(
  columns: readonly Column[],
  measured: readonly number[],
  headings: readonly string[],
): ColumnWidths[] {
  return columns.map(({ path, kind }, index) => {
    const heading = textWidth(headings[index] ?? "");
    const natural = Math.max(heading, measured[index] ?? 0);
    // Half an id or half a number is of no use.
    const whole = path === "id" || (kind !== undefined && kind !== "text" && kind !== "list");
    return { natural, minimum: whole ? natural : Math.min(natural, Math.max(heading, NARROW)) };
  });
}
