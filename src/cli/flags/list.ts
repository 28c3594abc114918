import { type Command, Option } from "commander";
import type { GlobalFlags } from "./global.js";
import { addOutputFlags, type OutputFlags } from "./output.js";
import { wholeNumber } from "./values.js";

/** The flags of a list. */
export interface ListFlags extends GlobalFlags, OutputFlags, FilterFlags {
  columns?: string;
  header?: boolean;
  csvRaw?: boolean;
  sort?: string;
  limit?: number;
  pageSize?: number;
  offset?: number;
  concurrency?: number;
  strict?: StrictFlag;
  /** The beginning of the list in few columns. */
  brief?: true;
  /** `false` for `--no-pager`. */
  pager?: boolean;
  /** The interval in milliseconds. */
  watch?: number;
  until?: string;
  /** Milliseconds. */
  watchTimeout?: number;
}

/** The flags of every list. */
export function addListFlags(command: Command): Command {
  addOutputFlags(command)
    .addOption(new Option("--columns <paths>", "Fields to print, such as id,last_seen.city").helpGroup("Output:"))
    .addOption(new Option("--no-header", "Omit the header line").helpGroup("Output:"))
    .addOption(new Option("--csv-raw", "Do not escape spreadsheet formulas in CSV cells").helpGroup("Output:"));
  return addReadFlags(command).addOption(
    new Option("--brief", "Print 50 items in few columns (default for an AI agent that names no form)").helpGroup(
      "List:",
    ),
  );
}

/** The flags of what reads a list: how, and which items of it. */
export function addReadFlags(command: Command): Command {
  const list = (flag: string, about: string) => new Option(flag, about).helpGroup("List:");
  const filter = (flag: string, about: string) => new Option(flag, about).helpGroup("Filters:");
  return command
    .addOption(list("--sort <field[:asc|:desc]>", "Sort order (server-side)"))
    .addOption(list("--limit <n>", "Number of items (default: all)").argParser(wholeNumber(1)))
    .addOption(list("--page-size <n>", "Number of items per page (default: the service's)").argParser(wholeNumber(1)))
    .addOption(list("--offset <n>", "Start at this offset (printed by an interrupted list)").argParser(wholeNumber(0)))
    .addOption(
      list(
        "--concurrency <n>",
        "Number of pages to fetch at once; 1 = one by one (default: up to 4, if pages are slow)",
      ).argParser(wholeNumber(1, 64)),
    )
    .addOption(
      list(
        "--strict [level]",
        "Fail if shape, order or numbers of the list are wrong; =all: also for nulls and new fields",
      ).choices(["all"]),
    )
    .addOption(filter("--status <status>", "Filter by status (client-side, after reading the whole list)"))
    .addOption(filter("--title <glob>", 'Filter by title glob, e.g. "Build*" (client-side)'));
}

/** The filters of a list of devices. */
export function addDeviceFilters(command: Command): Command {
  const filter = (flag: string, about: string) => new Option(flag, about).helpGroup("Filters:");
  return command
    .addOption(filter("--session-type <type>", "Filter by session type: browser, api or mcp (client-side)"))
    .addOption(filter("--seen-after <time>", "Filter by last seen since 7d, 12h or a date (client-side)"))
    .addOption(filter("--seen-before <time>", "Filter by last seen before 7d, 12h or a date (client-side)"));
}

/** `--strict` and `--strict=all`, as the option of a listing has them. */
export type StrictFlag = true | "all";

/** The client-side filters; the service has none. */
export interface FilterFlags {
  status?: string;
  title?: string;
  sessionType?: string;
  seenAfter?: string;
  seenBefore?: string;
}
