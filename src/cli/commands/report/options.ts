import type { ListFlags } from "../../flags/list.js";

/** The formats that a report has: a text to read, or the numbers as data. */
export const REPORT_FORMATS = ["table", "plain", "json", "ndjson", "yaml"] as const;

/** Options of `devices report`. */
export interface ReportFlags extends ListFlags {
  html?: string;
  force?: boolean;
}
