/** The output formats: the one table that help, flags, completion and the choice of a writer come from. */

import type { Format } from "../../profile/settings.js";
import type { FormatWriter, ObjectPrinter, WriterContext } from "./writer-types.js";

export interface OutputFormat {
  /** What it looks like, for the help and the README. */
  description: string;
  /** The columns that it prints where `--columns` names none: the most important ones, or all that have a heading. */
  columns: "main" | "all";
  /** What an expression of `--jq` sees: the whole list or each item; with "rows" it selects items of the list. */
  jq: "list" | "item" | "rows";
  list(context: WriterContext): Promise<FormatWriter>;
  /** Loads what prints a single object. */
  object(): Promise<ObjectPrinter>;
}

// Writers are above the flags, so they are loaded when they print: the rule of imports lets this file do no more.
const table = () => import("./table.js");
const lines = () => import("./csv.js");
const csv = () => import("./csv.js");

export const OUTPUT_FORMATS = {
  table: {
    description: "aligned columns that fit the terminal, relative times; the default on a terminal",
    columns: "main",
    jq: "rows",
    list: async (context) => (await table()).tableWriter(context, { fit: true }),
    object: async () => (await table()).recordObject,
  },
  wide: {
    description: "more columns, none left out",
    columns: "all",
    jq: "rows",
    list: async (context) => (await table()).tableWriter(context, { fit: false }),
    object: async () => (await table()).recordObject,
  },
  plain: {
    description: "tab-separated, nothing cut, RFC 3339 times; the default in a pipe",
    columns: "main",
    jq: "rows",
    list: async (context) => (await lines()).plainWriter(context),
    object: async () => (await lines()).plainObject,
  },
  json: {
    description: "one array (--json is the same); an interrupted list has no closing bracket",
    columns: "main",
    jq: "list",
    list: async (context) => (await lines()).jsonWriter(context),
    object: async () => (await lines()).jsonObject,
  },
  ndjson: {
    description: "one object a line, as they come",
    columns: "main",
    jq: "item",
    list: async (context) => (await lines()).ndjsonWriter(context),
    object: async () => (await lines()).ndjsonObject,
  },
  csv: {
    description:
      "RFC 4180; cells that a spreadsheet would run as a formula get a ' before them (--csv-raw leaves them); --csv-bom for Excel",
    columns: "all",
    jq: "rows",
    list: async (context) => (await csv()).csvWriter(context),
    object: async () => (await csv()).csvObject,
  },
  id: {
    description: "one identifier a line",
    columns: "main",
    jq: "rows",
    list: async (context) => (await lines()).idWriter(context),
    object: async () => (await lines()).idObject,
  },
} as const satisfies Readonly<Record<Format, OutputFormat>>;
