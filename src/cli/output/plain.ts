/** `-o plain` and `-o id`: lines for other programs. */

import { escapeText } from "../../redact.js";
import { cellText } from "./value.js";
import type { Writer, WriterContext } from "./writer-types.js";

/** One item a line, its columns separated by tabs, never cut, without a header. */
export function plainWriter({ io, columns, reveal }: WriterContext): Writer {
  return lineWriter(io, (item) => columns.map((column) => escapeText(cellText(item, column, { reveal }))).join("\t"));
}

/** One id a line. */
export function idWriter({ io, reveal }: WriterContext): Writer {
  return lineWriter(io, (item) => escapeText(cellText(item, { path: "id", header: "ID" }, { reveal })));
}

function lineWriter(io: WriterContext["io"], line: (item: object) => string): Writer {
  return {
    async write(items) {
      if (items.length > 0) await io.stdout.write(`${items.map(line).join("\n")}\n`);
    },
    async end() {},
    async abort() {},
  };
}
