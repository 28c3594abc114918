/** `-o plain` and `-o id`: lines for other programs. */

import { escapeText } from "../../redact.js";
import { cellText } from "./value.js";
import type { ObjectContext, Writer, WriterContext } from "./writer-types.js";

/** One item per line, its columns separated by tabs, never cut, without a header. */
export function plainWriter({ io, columns, reveal }: WriterContext): Writer {
  return lineWriter(io, (item) => columns.map((column) => escapeText(cellText(item, column, { reveal }))).join("\t"));
}

/** One id per line. */
export function idWriter({ io, reveal }: WriterContext): Writer {
  return lineWriter(io, (item) => idText(item, reveal));
}

/** A field a line: its path, a tab, its value. */
export function plainObject(_value: object, { fields, reveal }: ObjectContext): string {
  return fields({ reveal })
    .map(({ path, text }) => `${escapeText(path)}\t${escapeText(text)}\n`)
    .join("");
}

/** The id of one object. */
export function idObject(value: object, { reveal }: ObjectContext): string {
  return `${idText(value, reveal)}\n`;
}

function idText(item: object, reveal: boolean): string {
  return escapeText(cellText(item, { path: "id", header: "ID" }, { reveal }));
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
