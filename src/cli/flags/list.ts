import type { Command } from "commander";
import { wholeNumber } from "../../profile/login-settings.js";
import { addOutputFlags, type GlobalFlags, type OutputFlags } from "./global.js";
import { addFlags } from "./values.js";

export interface ListFlags extends GlobalFlags, OutputFlags, FilterFlags {
  columns?: string;
  header?: boolean;
  csvRaw?: boolean;
  csvBom?: boolean;
  sort?: string;
  limit?: number;
  pageSize?: number;
  offset?: number;
  concurrency?: number;
  strict?: true | "all";
  /** The beginning of the list in few columns. */
  brief?: true;
}

export function addListFlags(command: Command): Command {
  addFlags(addOutputFlags(command), "Output:", [
    ["--columns <paths>", "Fields to print, such as id,last_seen.city"],
    ["--no-header", "Omit the header line"],
    ["--csv-raw", "Do not escape spreadsheet formulas in CSV cells"],
    ["--csv-bom", "Begin CSV with a byte order mark, as Excel needs it for UTF-8"],
  ]);
  const brief = "Print 50 items in few columns (default for an AI agent that names no form)";
  return addFlags(addReadFlags(command), LIST, [["--brief", brief]]);
}

const LIST = "List:";
const FILTERS = "Filters:";

/** The flags of what reads a list: how, and which items of it. */
export function addReadFlags(command: Command): Command {
  const atOnce = "Number of pages to fetch at once; 1 = one by one (default: up to 4, if pages are slow)";
  const strict = "Fail if shape, order or numbers of the list are wrong; =all: also for nulls and new fields";
  addFlags(command, LIST, [
    ["--sort <field[:asc|:desc]>", "Sort order (server-side)"],
    ["--limit <n>", "Number of items (default: all)", wholeNumber(1)],
    ["--page-size <n>", "Number of items per page (default: the service's)", wholeNumber(1)],
    ["--offset <n>", "Start at this offset (printed by an interrupted list)", wholeNumber(0)],
    ["--concurrency <n>", atOnce, wholeNumber(1, 64)],
    ["--strict [level]", strict, ["all"]],
  ]);
  return addFlags(command, FILTERS, [
    ["--status <status>", "Filter by status (client-side, after reading the whole list)"],
    ["--title <glob>", 'Filter by title glob, e.g. "Build*" (client-side)'],
  ]);
}

export function addDeviceFilters(command: Command): Command {
  return addFlags(command, FILTERS, [
    ["--session-type <type>", "Filter by session type: browser, api or mcp (client-side)"],
    ["--country <codes>", "Filter by country of last seen, e.g. DE or DE,AT (client-side)"],
    ["--seen-after <time>", "Filter by last seen since 7d, 12h or a date (client-side)"],
    ["--seen-before <time>", "Filter by last seen before 7d, 12h or a date (client-side)"],
  ]);
}

/** The client-side filters; the service has none. */
export interface FilterFlags {
  status?: string;
  title?: string;
  sessionType?: string;
  country?: string;
  seenAfter?: string;
  seenBefore?: string;
}
