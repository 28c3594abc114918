/** Printing one object, for the commands that get a single thing. */

import { escapeText } from "../../redact.js";
import type { Format } from "../flags/formats.js";
import type { Io } from "../io/io.js";
import { selectColumns } from "./columns.js";
import { guardFormula, toCsv } from "./csv.js";
import { jqFilter, printResults, refuseJqWith } from "./jq.js";
import { recordText } from "./records.js";
import { stringifyItems } from "./safe-json.js";
import { cellStyle, shownCell } from "./table.js";
import { type CellStyle, type Column, cellText, leaves, project, readPath, valueText } from "./value.js";
import type { OutputOptions } from "./writer.js";
import { toYaml } from "./yaml.js";

/** How one object is printed; its columns are needed only for headings and times. */
export type ObjectOptions = Partial<OutputOptions>;

/**
 * Prints one object: `key: value` lines for `table` and `wide`, tab-separated ones for `plain`, one record for `csv`,
 * and the object itself for the others.
 *
 * @throws `AgentAuthError` `usage` as `createWriter` does; `PipeClosed` when nobody reads any more
 */
export async function printObject(io: Io, format: Format, value: object, options: ObjectOptions = {}): Promise<void> {
  const set = {
    columns: options.columns ?? [],
    wideColumns: options.wideColumns ?? [],
    fields: options.fields ?? Object.keys(value),
  };
  const selected = options.columnsFlag === undefined ? undefined : selectColumns(options.columnsFlag, set);
  const paths = selected?.map(({ path }) => path);
  const reveal = options.showSecrets === true;
  if (options.jq !== undefined) {
    refuseJqWith(format);
    return printResults(await jqFilter(options.jq)(stringifyItems([value], "", { reveal, paths })), io);
  }
  const known = new Map([...set.columns, ...set.wideColumns].map((column) => [column.path, column]));
  const fields = (style: CellStyle) => fieldsOf(value, selected, known, style);
  await io.stdout.write(await objectText(format, value, { io, options, paths, reveal, fields }));
}

interface ObjectContext {
  io: Io;
  options: ObjectOptions;
  paths: readonly string[] | undefined;
  reveal: boolean;
  fields(style: CellStyle): ObjectField[];
}

interface ObjectField {
  path: string;
  text: string;
  /** A number is never a formula. */
  numeric: boolean;
}

function fieldsOf(
  value: object,
  selected: readonly Column[] | undefined,
  known: ReadonlyMap<string, Column>,
  style: CellStyle,
): ObjectField[] {
  if (selected !== undefined) {
    return selected.map((column) => ({
      path: column.path,
      text: cellText(value, column, style),
      numeric: typeof readPath(value, column.path) === "number",
    }));
  }
  return leaves(value).map(({ path, key, value: leaf }) => {
    const kind = known.get(path)?.kind ?? (key === "at" ? "time" : undefined);
    return { path, text: valueText(key, leaf, kind, style), numeric: typeof leaf === "number" };
  });
}

async function objectText(format: Format, value: object, context: ObjectContext): Promise<string> {
  const { io, options, paths, reveal, fields } = context;
  switch (format) {
    case "json":
    case "ndjson": {
      const indent = format === "json" && io.stdout.isTTY ? 2 : undefined;
      return `${stringifyItems([value], "", { reveal, paths, indent })}\n`;
    }
    case "yaml":
      return toYaml(paths === undefined ? value : project(value, paths), reveal);
    case "id":
      return `${escapeText(cellText(value, { path: "id", header: "ID" }, { reveal }))}\n`;
    case "csv":
      return csvText(fields({ reveal }), context);
    case "plain":
      return fields({ reveal })
        .map(({ path, text }) => `${escapeText(path)}\t${escapeText(text)}\n`)
        .join("");
    default: {
      const style = cellStyle({ io, reveal, now: options.now ?? Date.now });
      return recordText(
        fields(style).map(({ path, text }) => [escapeText(path), shownCell(text)]),
        io.stdout.colors.bold,
      );
    }
  }
}

function csvText(fields: readonly ObjectField[], { io, options }: ObjectContext): Promise<string> {
  const shown = io.stdout.isTTY ? escapeText : (text: string) => text;
  const guard = options.csvRaw === true ? (text: string) => text : guardFormula;
  const head = fields.map(({ path }) => guard(shown(path)));
  const row = fields.map(({ text, numeric }) => (numeric ? shown(text) : guard(shown(text))));
  return toCsv(options.noHeader === true ? [row] : [head, row]);
}
