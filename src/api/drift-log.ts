import type { AgentAuthError } from "../errors.js";
import type { Drift, Page, ReadOptions } from "./page.js";
import { refusedPage } from "./page-checks.js";

/** The changes of the pagination numbers over the pages of a listing. */
export class DriftSummary {
  /** Every change of a number. */
  readonly drift: Drift[] = [];
  /** The last `item_count`; undefined until a page has one. */
  count: number | undefined;
  /** The `item_count` of the page before the last one that has it. */
  previousCount: number | undefined;
  /** The first `item_count` plus every rise since: how many items the list ever held, deleted ones included. */
  everCounted = 0;
  /** Whether `item_count` ever rose. */
  hasGrown = false;
  /** The number of items that were read again after a rewind. */
  reread = 0;
}

/** Compares the numbers of each page with those of the page before it, and reports every change. */
export class DriftLog {
  readonly stats = new DriftSummary();
  readonly #options: Pick<ReadOptions, "checks" | "onDrift">;
  #pageSize: number | undefined;

  constructor(options: Pick<ReadOptions, "checks" | "onDrift">) {
    this.#options = options;
  }

  /**
   * Records a page. A number that the page leaves out keeps its last value.
   *
   * @returns how much `item_count` changed since the page before
   * @throws `AgentAuthError` `list_changed` at the first change, with the check `drift`
   */
  record<T>(page: Page<T>): number {
    const { stats } = this;
    const { item_count: count, page_size: size } = page.pagination;
    const change = count == null ? 0 : count - (stats.count ?? count);
    const reported = stats.drift.length;
    this.#compare("item_count", stats.count, count, page.offset);
    this.#compare("page_size", this.#pageSize, size, page.offset);
    this.#pageSize = size ?? this.#pageSize;
    if (count != null) {
      stats.everCounted = stats.count === undefined ? count : stats.everCounted + Math.max(0, change);
      stats.previousCount = stats.count;
      stats.count = count;
      stats.hasGrown ||= change > 0;
    }
    const first = stats.drift[reported];
    if (first && this.#options.checks.has("drift")) {
      const what = `${first.field} was ${first.from}, and ${first.to} at offset ${first.offset}`;
      throw listChanged(page, `the list changed while it was read: ${what}`, page.offset + Math.min(0, change));
    }
    return change;
  }

  #compare(field: Drift["field"], from: number | undefined, to: number | null | undefined, offset: number): void {
    if (from === undefined || to == null || from === to) return;
    const drift = { field, from, to, offset };
    this.stats.drift.push(drift);
    this.#options.onDrift?.(drift);
  }
}

/** The error for a list that changed; `resume` is at `offset`, before everything that may have been missed. */
export function listChanged<T>(page: Page<T>, what: string, offset = page.offset): AgentAuthError {
  const resume = Math.max(0, offset);
  const again = `resuming at offset ${resume} may repeat items`;
  return refusedPage("list_changed", page, `${what}; ${again}`, { retryable: true, resume });
}
