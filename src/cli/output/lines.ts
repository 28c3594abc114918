/** `-o plain`, `-o id`, `-o ndjson` and `-o json`: lines for other programs. */

import { escapeText } from "../../redact.js";
import { stringifyItems } from "./safe-json.js";
import { cellText } from "./value.js";
import type { FormatWriter, ObjectContext, WriterContext } from "./writer-types.js";

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
