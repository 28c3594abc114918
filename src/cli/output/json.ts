/** `-o json` and `-o ndjson`. */

import { stringifyItems } from "./safe-json.js";
import type { ObjectContext, Writer, WriterContext } from "./writer-types.js";

/**
 * One array, streamed: indented on a terminal, one item per line elsewhere. An aborted array stays open, so that no
 * parser accepts it as the whole list.
 */
export function jsonWriter({ io, paths, reveal }: WriterContext): Writer {
  const indent = io.stdout.isTTY ? 2 : 0;
  const style = { reveal, paths, indent };
  const lineBreak = indent ? "\n" : "";
  let open = false;
  return {
    async write(items) {
      if (items.length === 0) return;
      const text = stringifyItems(items, ",\n", style);
      const start = open ? ",\n" : `[${lineBreak}`;
      open = true;
      // A line break inside a string is escaped: every "\n" here is between tokens.
      await io.stdout.write(start + (indent ? `  ${text.replaceAll("\n", "\n  ")}` : text));
    },
    end: () => io.stdout.write(open ? `${lineBreak}]\n` : "[]\n"),
    async abort() {
      if (open) await io.stdout.write("\n");
    },
  };
}

/** One item per line. */
export function ndjsonWriter({ io, paths, reveal }: WriterContext): Writer {
  const style = { reveal, paths };
  return {
    async write(items) {
      if (items.length > 0) await io.stdout.write(`${stringifyItems(items, "\n", style)}\n`);
    },
    async end() {},
    async abort() {},
  };
}

/** One object: indented on a terminal, on one line elsewhere. */
export function jsonObject(value: object, { io, paths, reveal }: ObjectContext): string {
  return `${stringifyItems([value], "", { reveal, paths, indent: io.stdout.isTTY ? 2 : undefined })}\n`;
}

/** One object on one line. */
export function ndjsonObject(value: object, { paths, reveal }: ObjectContext): string {
  return `${stringifyItems([value], "", { reveal, paths })}\n`;
}
