/** The writers of lists, one for each `--output` format. */

import type { Format } from "../flags/formats.js";
import type { Io } from "../io/io.js";
import { PipeClosed } from "../io/stream.js";
import { type ColumnSet, selectColumns } from "./columns.js";
import { csvWriter } from "./csv.js";
import { jqWriter, refuseJqWith } from "./jq.js";
import { jsonWriter, ndjsonWriter } from "./json.js";
import { idWriter, plainWriter } from "./plain.js";
import { tableWriter } from "./table.js";
import type { Writer, WriterContext } from "./writer-types.js";
import { yamlWriter } from "./yaml.js";

export { FORMATS, type Format } from "../flags/formats.js";
export type { Writer } from "./writer-types.js";

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
  /** Whether the rows are few and known together, unlike those of a list of the service. Default false. */
  bounded?: boolean | undefined;
  /** The current time in milliseconds. Default: `Date.now`. */
  now?: (() => number) | undefined;
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
    bounded: options.bounded === true,
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
  refuseJqWith(format);
  return jqWriter(expression, { each: format === "ndjson" }, context);
}

function ignorePipe(error: unknown): void {
  if (!(error instanceof PipeClosed)) throw error;
}
