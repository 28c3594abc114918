/** Prints one object, for the commands that return a single one. */

import type { Format } from "../../profile/settings.js";
import type { OutputFlags } from "../flags/output.js";
import type { Io } from "../io/io.js";
import type { CommandContext } from "../runtime/context.js";
import { selectColumns } from "./columns.js";
import { OUTPUT_FORMATS } from "./formats.js";
import { jqFilter, printResults, refuseJqWith } from "./jq.js";
import { stringifyItems } from "./safe-json.js";
import { type CellStyle, type Column, cellText, leaves, readPath, valueText } from "./value.js";
import { formatOf, type OutputOptions, printContext } from "./writer.js";
import type { ObjectField } from "./writer-types.js";

/** Options of one object; its columns are needed only for headings and times. */
export type ObjectOptions = Partial<OutputOptions>;

/**
 * Prints one object: `key: value` lines for `table` and `wide`, tab-separated ones for `plain`, one record for `csv`,
 * and the object itself for the others.
 *
 * @throws `AgentAuthError` `usage` as `createWriter` does; `PipeClosed` if the reader has closed the pipe
 */
export async function printObject(io: Io, format: Format, value: object, options: ObjectOptions = {}): Promise<void> {
  const set = {
    columns: options.columns ?? [],
    wideColumns: options.wideColumns ?? [],
    fields: options.fields ?? Object.keys(value),
  };
  const selected = options.columnsFlag === undefined ? undefined : selectColumns(options.columnsFlag, set);
  const context = printContext(options, selected, io);
  if (options.jq !== undefined) {
    refuseJqWith(format);
    return printResults(await jqFilter(options.jq)(stringifyItems([value], "", context)), io);
  }
  const known = new Map([...set.columns, ...set.wideColumns].map((column) => [column.path, column]));
  const print = await OUTPUT_FORMATS[format].object();
  const text = await print(value, {
    ...context,
    groups: selected === undefined ? options.groups : undefined,
    fields: (style) => fieldsOf(value, selected, known, style),
  });
  await io.stdout.write(text);
}

/** Prints one object in the format of the flags or the settings. */
export function printResult(value: object, options: OutputFlags, context: CommandContext): Promise<void> {
  const { io, now, settings } = context;
  const { jq, showSecrets } = options;
  return printObject(io, formatOf(options, settings(), io), value, { jq, showSecrets, now });
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
