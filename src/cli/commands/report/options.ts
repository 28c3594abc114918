import type { OutputFlags } from "../../flags/output.js";
import type { FilterFlags } from "../../listing/filters.js";
import type { GlobalFlags } from "../../runtime/context.js";

/** What `devices report` was told. */
export interface ReportFlags extends GlobalFlags, FilterFlags, OutputFlags {
  html?: string;
  force?: boolean;
  pager?: boolean;
  sort?: string;
  limit?: number;
  pageSize?: number;
  offset?: number;
  concurrency?: number;
  strict?: boolean;
}
