import type { FilterFlags } from "../listing/filters.js";
import type { GlobalFlags } from "../runtime/context.js";
import type { OutputFlags } from "./output.js";

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
