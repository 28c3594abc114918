/** One complete read of a watched list. */

import type { Listing } from "../../../../api/listing.js";
import type { ListingSummary } from "../../../../api/page.js";
import { isUnusableItems } from "../../../../api/pages.js";
import { type AgentAuthError, isAgentAuthError } from "../../../../errors.js";
import type { Progress } from "../../../io/io.js";
import type { Filter } from "../../../listing/filters.js";
import type { ListItem } from "../../../listing/kinds.js";

/** The result of one poll. */
export interface Poll {
  /** The items that match the filter, in the service's order. */
  items: readonly ListItem[];
  /** The items that do not match. */
  others: readonly ListItem[];
  /** Number of items in the service's list, if the service reports it. */
  total: number | undefined;
  /** Whether the list did not change during the poll: only then a missing item is really gone. */
  isWhole: boolean;
  /** Whether one response had the whole list. */
  isOnePage: boolean;
  /** The error of a list with items that have no id: the items are all others. */
  failure: AgentAuthError | undefined;
}

/** Options of {@link poll}. */
export interface PollOptions {
  open(onEnd: (summary: ListingSummary) => void): Listing<ListItem>;
  filter: Filter | undefined;
  /** Number of items to show; `undefined` for all. */
  limit: number | undefined;
  progress: Progress;
}

/**
 * Reads the list once.
 *
 * @throws the error of the failed page; the pages before it are dropped, since the next poll starts again
 */
export async function poll({ open, filter, limit, progress }: PollOptions): Promise<Poll> {
  let summary: ListingSummary | undefined;
  let failure: AgentAuthError | undefined;
  let pages = 0;
  const items: ListItem[] = [];
  const others: ListItem[] = [];
  const listing = open((end) => {
    summary = end;
  });
  try {
    for await (const page of listing.pages()) {
      pages++;
      for (const item of page.items) (filter?.matches(item) === false ? others : items).push(item);
      progress.update(`${items.length + others.length} of ${page.pagination.item_count ?? "?"}`);
      if (limit !== undefined && items.length >= limit) break;
    }
  } catch (thrown) {
    if (isUnusableItems(thrown)) failure = thrown;
    else
      throw isAgentAuthError(thrown) && isAgentAuthError(thrown.cause) && thrown.class === "partial"
        ? thrown.cause
        : thrown;
  } finally {
    progress.stop();
  }
  return {
    items: items.slice(0, limit),
    others,
    total: summary?.expected,
    isWhole: isWhole(summary),
    isOnePage: pages === 1,
    failure,
  };
}

/** A duplicate has moved between two pages, and another item may have been missed there. */
function isWhole(summary: ListingSummary | undefined): boolean {
  if (summary === undefined || !summary.complete) return false;
  return summary.drift.length === 0 && summary.duplicates === 0;
}
