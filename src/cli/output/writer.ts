/** The writers of lists, one for each `--output` format. */

import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { Io } from "../io.js";
import { type ColumnSet, selectColumns } from "./columns.js";
import { csvWriter } from "./csv.js";
import { jqWriter } from "./jq.js";
import { jsonWriter, ndjsonWriter } from "./json.js";
import { idWriter, plainWriter } from "./plain.js";
import { PipeClosed } from "./stream.js";
import { tableWriter } from "./table.js";
import type { Column } from "./value.js";
import { yamlWriter } from "./yaml.js";

/** The values of `--output`. */
export const FORMATS = ["table", "wide", "plain", "json", "ndjson", "csv", "yaml", "id"] as const;

/** One value of `--output`. */
export type Format = (typeof FORMATS)[number];

/** Prints a list, a page at a time. */
export interface Writer {
  /**
   * Prints items. Wait for it before the next page: a slow reader slows the listing.
   *
   * @throws `PipeClosed` when nobody reads any more
   */
  write(items: readonly object[]): Promise<void>;
  /** Ends a list that is complete. */
  end(): Promise<void>;
  /** Ends a list that is not: what was given is printed, and JSON stays without its closing bracket. */
  abort(): Promise<void>;
}

/** What flags and the kind of list decide. */
export interface OutputOptions extends ColumnSet {
  /** `--columns`: paths into the items, separated by commas. */
  columnsFlag?: string | undefined;
  /** `--no-header`. */
  noHeader?: boolean | undefined;
  /** `--jq`. With `table`, `wide` and `plain` it works as with `json`. */
  jq?: string | undefined;
  /** `--show-secrets`. */
  showSecrets?: boolean | undefined;
  /** `--csv-raw`: leaves cells that a spreadsheet takes for a formula as they are. */
  csvRaw?: boolean | undefined;
  /** The current time in milliseconds. Default: `Date.now`. */
  now?: (() => number) | undefined;
}

/** What a writer knows. */
export interface WriterContext {
  io: Io;
  /** The columns to show. */
  columns: readonly Column[];
  /** The paths that `--columns` named, if it was given. */
  paths: readonly string[] | undefined;
  reveal: boolean;
  header: boolean;
  csvRaw: boolean;
  now: () => number;
}

/**
 * The writer for a format. It prints nothing before the first item.
 *
 * @throws {@link AgentAuthError} `usage` for a field that `--columns` does not know, and for `--jq` with a format
 * that is not JSON
 */
export function createWriter(format: Format, options: OutputOptions, io: Io): Writer {
  const selected = options.columnsFlag === undefined ? undefined : selectColumns(options.columnsFlag, options);
  const wide = format === "wide" || format === "csv";
  const context: WriterContext = {
    io,
    columns: selected ?? (wide ? options.wideColumns : options.columns),
    paths: selected?.map(({ path }) => path),
    reveal: options.showSecrets === true,
    header: options.noHeader !== true,
    csvRaw: options.csvRaw === true,
    now: options.now ?? Date.now,
  };
  const writer = options.jq === undefined ? WRITERS[format](context) : filtered(format, options.jq, context);
  return { ...writer, abort: () => writer.abort().catch(ignorePipe) };
}

const WRITERS: Readonly<Record<Format, (context: WriterContext) => Writer>> = {
  table: (context) => tableWriter(context, { fit: true }),
  wide: (context) => tableWriter(context, { fit: false }),
  plain: plainWriter,
  json: jsonWriter,
  ndjson: ndjsonWriter,
  csv: csvWriter,
  yaml: yamlWriter,
  id: idWriter,
};

function filtered(format: Format, expression: string, context: WriterContext): Writer {
  if (format === "csv" || format === "yaml" || format === "id") {
    throw new AgentAuthError("usage", `--jq does not work with the output format ${quote(format)}`, {
      class: "usage",
      hint: "use -o json (the expression sees the whole array) or -o ndjson (it sees each item)",
    });
  }
  return jqWriter(expression, { each: format === "ndjson" }, context);
}

function ignorePipe(error: unknown): void {
  if (!(error instanceof PipeClosed)) throw error;
}
