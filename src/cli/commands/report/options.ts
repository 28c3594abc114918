import type { GlobalFlags } from "../../flags/global.js";
import type { FilterFlags, StrictFlag } from "../../flags/list.js";
import type { OutputFlags } from "../../flags/output.js";

/** Options of `devices report`. */
export interface ReportFlags extends GlobalFlags, FilterFlags, OutputFlags {
  html?: string;
  force?: boolean;
  pager?: boolean;
  sort?: string;
  limit?: number;
  pageSize?: number;
  offset?: number;
  concurrency?: number;
  strict?: StrictFlag;
}
