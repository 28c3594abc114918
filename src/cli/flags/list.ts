import { type Command, Option } from "commander";
import type { GlobalFlags } from "./global.js";
import { addOutputFlags, type OutputFlags } from "./output.js";
import { wholeNumber } from "./values.js";

/** What the flags of a list say. */
export interface ListFlags extends GlobalFlags, OutputFlags, FilterFlags {
  columns?: string;
  header?: boolean;
  csvRaw?: boolean;
  sort?: string;
  limit?: number;
  pageSize?: number;
  offset?: number;
  concurrency?: number;
  strict?: boolean;
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
  return addOutputFlags(command)
    .addOption(new Option("--columns <paths>", "fields to print, such as id,last_seen.city").helpGroup("Output:"))
    .addOption(new Option("--no-header", "leave out the heading line").helpGroup("Output:"))
    .addOption(new Option("--csv-raw", "leave spreadsheet formulas in CSV cells as they are").helpGroup("Output:"))
    .addOption(new Option("--sort <field[:asc|:desc]>", "the order, by the service").helpGroup("List:"))
    .addOption(new Option("--limit <n>", "items at most (default: all)").argParser(wholeNumber(1)).helpGroup("List:"))
    .addOption(
      new Option("--page-size <n>", "items in a page (default: the service's)")
        .argParser(wholeNumber(1))
        .helpGroup("List:"),
    )
    .addOption(
      new Option("--offset <n>", "start here, where an interrupted list said to go on")
        .argParser(wholeNumber(0))
        .helpGroup("List:"),
    )
    .addOption(
      new Option("--concurrency <n>", "pages fetched at once; 1 is one after the other (default 4)")
        .argParser(wholeNumber(1, 64))
        .helpGroup("List:"),
    )
    .addOption(
      new Option("--strict", "fail if the list changes while it is read, or has unknown shapes").helpGroup("List:"),
    )
    .addOption(
      new Option("--status <status>", "only these (filtered here, after reading the whole list)").helpGroup("Filters:"),
    )
    .addOption(
      new Option("--title <glob>", 'only titles like "Build*" (filtered here, likewise)').helpGroup("Filters:"),
    );
}

/** The filters that are applied here, since the service has none. */
export interface FilterFlags {
  status?: string;
  title?: string;
  sessionType?: string;
  seenAfter?: string;
  seenBefore?: string;
}
