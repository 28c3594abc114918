/** Prints one object, for the commands that return a single one. */

import type { Format } from "../../profile/settings.js";
import type { OutputFlags } from "../flags/output.js";
import type { CommandContext } from "../runtime/context.js";
import type { ColumnSet } from "./columns.js";
import { OUTPUT_FORMATS } from "./formats.js";
import { jqFilter, printResults, refuseJqWith } from "./jq.js";
import { stringifyItems } from "./safe-json.js";
import { leaves, valueText } from "./value.js";
import { formatOf } from "./writer.js";

/**
 * Prints one object: `key: value` lines for `table` and `wide`, tab-separated ones for `plain`, one record for `csv`,
 * and the object itself for the others.
 *
 * @param set says which of its fields are times, and its parts on a terminal
 * @throws `AgentAuthError` `usage` as `createWriter` does; `PipeClosed` if the reader has closed the pipe
 */
export async function printObject(
  format: Format,
  value: object,
  { jq, showSecrets: reveal = false }: Pick<OutputFlags, "jq" | "showSecrets">,
  { io, now }: Pick<CommandContext, "io" | "now">,
  set?: ColumnSet,
): Promise<void> {
  if (jq !== undefined) {
    refuseJqWith(format);
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
        return { path, text: valueText(key, leaf, kind, style), numeric: typeof leaf === "number" };
      }),
  });
  await io.stdout.write(text);
}

/** Prints one object in the format of the flags or the settings. */
export function printResult(value: object, options: OutputFlags, context: CommandContext): Promise<void> {
  return printObject(formatOf(options, context.settings(), context.io), value, options, context);
}
