/** Prints lists and single objects in the format of the flags or the settings. */

import { usageError } from "../../errors.js";
import { isNumber } from "../../mcp/json-rpc.js";
import type { Format, Settings } from "../../profile/settings.js";
import type { OutputFlags } from "../flags/global.js";
import type { Io } from "../io/io.js";
import { PipeClosed } from "../io/write-all.js";
import type { CommandContext } from "../runtime/context.js";
import { type ColumnSet, selectColumns } from "./columns.js";
import { OUTPUT_FORMATS } from "./formats.js";
import { jqFilter, jqWriter, printResults } from "./jq.js";
import { leaves, stringifyItems, valueText } from "./value.js";
import type { FormatWriter, Writer, WriterContext } from "./writer-types.js";

export type { Writer } from "./writer-types.js";

/** What flags and the kind of list decide. */
export interface OutputOptions extends ColumnSet {
  /** `--columns`: paths into the items, separated by commas. */
  columnsFlag?: string | undefined;
  noHeader?: boolean | undefined;
  /** `--jq`. */
  jq?: string | undefined;
  showSecrets?: boolean | undefined;
  /** `--csv-raw`: leaves cells that a spreadsheet takes for a formula as they are. */
  csvRaw?: boolean | undefined;
  /** `--csv-bom`: begins CSV with a byte order mark. */
  csvBom?: boolean | undefined;
  /** Whether the rows are few and known together, unlike those of a list of the service. Default false. */
  bounded?: boolean | undefined;
  /** The current time in milliseconds. Default: `Date.now`. */
  now?: (() => number) | undefined;
}

/**
 * The writer for a format, loaded while the first page is fetched. It prints nothing before the first item.
 *
 * @throws {@link AgentAuthError} `usage` for a field that `--columns` does not know
 */
export function createWriter(format: Format, options: OutputOptions, io: Io): Writer {
  const { jq, columnsFlag, now = Date.now } = options;
  const selected = columnsFlag === undefined ? undefined : selectColumns(columnsFlag, options);
  const all = OUTPUT_FORMATS[format].columns === "all";
  const context: WriterContext = {
    io,
    columns: selected ?? (all ? options.wideColumns : options.columns),
    screenColumns: selected || all ? undefined : options.screenColumns,
    paths: selected?.map(({ path }) => path),
    reveal: options.showSecrets === true,
    header: options.noHeader !== true,
    csvRaw: options.csvRaw === true,
    csvBom: options.csvBom === true,
    bounded: options.bounded === true,
    now,
  };
  const { list, jq: mode } = OUTPUT_FORMATS[format];
  const filtered =
    jq === undefined ? undefined : jqWriter(jq, mode, context, mode === "rows" ? list(context) : undefined);
  const writer: FormatWriter | Promise<FormatWriter> = filtered ?? list(context);
  return {
    isDeferred: filtered?.isDeferred === true,
    write: async (items) => (await writer).write(items),
    end: async () => (await writer).end?.(),
    abort: async () => (await writer).abort?.().catch(ignorePipe),
  };
}

function ignorePipe(error: unknown): void {
  if (!(error instanceof PipeClosed)) throw error;
}

/** The output format: the flag, else the profile's, else the default for a terminal or a pipe. */
export function chooseFormat(options: OutputFlags, settings: Pick<Settings, "output">, io: Io): Format {
  if (options.output) return options.output;
  if (options.json || options.jq !== undefined) return "json";
  return (settings.output?.value as Format | undefined) ?? (io.stdout.isTTY ? "table" : "plain");
}

type RunOutput = Pick<CommandContext, "io" | "now"> & { settings(): Pick<Settings, "output"> };

/** Prints rows that are few and known together, in the format of the flags or the settings. */
export function printRows(
  rows: readonly object[],
  set: ColumnSet,
  options: OutputFlags,
  context: RunOutput,
): Promise<void> {
  return printPages([rows], { ...set, bounded: true }, options, context);
}

/** Prints rows of which each page is written before the next one is read, in the format of the flags or the settings. */
export async function printPages(
  pages: AsyncIterable<readonly object[]> | Iterable<readonly object[]>,
  set: ColumnSet & Pick<OutputOptions, "bounded">,
  options: OutputFlags,
  { io, now, settings }: RunOutput,
): Promise<void> {
  const writer = createWriter(chooseFormat(options, settings(), io), { ...set, jq: options.jq, now }, io);
  try {
    for await (const rows of pages) await writer.write(rows);
    await writer.end();
  } catch (thrown) {
    await writer.abort();
    throw thrown;
  }
}

/** Whether the flags ask for an output that is otherwise left out. */
export function isOutputGiven({ output, json, jq }: OutputFlags): boolean {
  return output !== undefined || json === true || jq !== undefined;
}

/**
 * Prints one object: `key: value` lines for `table` and `wide`, tab-separated ones for `plain`, one record for `csv`,
 * and the object itself for the others.
 *
 * @param set says which of its fields are times, and its parts on a terminal
 * @throws `AgentAuthError` `usage` for `--jq` with `csv` and `id`; `PipeClosed` if the reader has closed the pipe
 */
export async function printObject(
  format: Format,
  value: object,
  { jq, showSecrets: reveal = false }: Pick<OutputFlags, "jq" | "showSecrets">,
  { io, now }: Pick<CommandContext, "io" | "now">,
  set?: ColumnSet,
): Promise<void> {
  if (jq !== undefined) {
    if (format === "csv" || format === "id")
      throw usageError(`--jq does not work with -o ${format} for one object`, "use -o json");
    return printResults(await jqFilter(jq)(stringifyItems([value], "", { reveal })), io);
  }
  const kinds = new Map(set?.wideColumns.map(({ path, kind }) => [path, kind]));
  const print = await OUTPUT_FORMATS[format].object();
  const text = await print(value, {
    io,
    reveal,
    now,
    groups: set?.groups,
    fields: (style) =>
      leaves(value).map(({ path, key, value: leaf }) => {
        const kind = kinds.get(path) ?? (key === "at" ? "time" : undefined);
        return { path, text: valueText(key, leaf, kind, style), numeric: isNumber(leaf) };
      }),
  });
  await io.stdout.write(text);
}

/** Prints one object in the format of the flags or the settings. */
export function printResult(value: object, options: OutputFlags, context: CommandContext): Promise<void> {
  return printObject(chooseFormat(options, context.settings(), context.io), value, options, context);
}
