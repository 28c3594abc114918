/** One reading of a watched list, from its beginning to its end. */

import type { Listing } from "../../../../api/listing.js";
import type { ListingSummary } from "../../../../api/page.js";
import type { Device } from "../../../../api/types.js";
import { isAgentAuthError } from "../../../../errors.js";
import type { Progress } from "../../../io/io.js";
import type { Filter } from "../../../listing/filters.js";

/** What one reading gave. */
export interface Poll {
  /** The items that the filter lets through, in the service's order. */
  items: readonly Device[];
  /** The items that it does not. */
  others: readonly Device[];
  /** Items in the service's list, as far as it says so. */
  total: number | undefined;
  /** Whether the list did not change while it was read: only then an item that is not in it is gone. */
  isWhole: boolean;
  /** Whether one answer had all of it. */
  isOnePage: boolean;
}

/** What a reading needs. */
export interface PollOptions {
  open(onEnd: (verdict: ListingSummary) => void): Listing<Device>;
  filter: Filter | undefined;
  /** Items to show; `undefined` for all of them. */
  limit: number | undefined;
  progress: Progress;
}

/**
 * Reads the list once.
 *
 * @throws the error of the page that failed: what came before it is dropped, since the next reading begins anew
 */
export async function poll({ open, filter, limit, progress }: PollOptions): Promise<Poll> {
  let verdict: ListingSummary | undefined;
  let pages = 0;
  const items: Device[] = [];
  const others: Device[] = [];
  const listing = open((end) => {
    verdict = end;
  });
  try {
    for await (const page of listing.pages()) {
      pages++;
      for (const item of page.items) (filter?.matches(item) === false ? others : items).push(item);
      progress.update(`${items.length + others.length} of ${page.pagination.item_count ?? "?"}`);
      if (limit !== undefined && items.length >= limit) break;
    }
  } catch (thrown) {
    throw isAgentAuthError(thrown) && isAgentAuthError(thrown.cause) && thrown.class === "partial"
      ? thrown.cause
      : thrown;
  } finally {
    progress.stop();
  }
  return {
    items: items.slice(0, limit),
    others,
    total: verdict?.expected,
    isWhole: isWhole(verdict),
    isOnePage: pages === 1,
  };
}

/** An item that was listed twice has moved between two pages, and another one may have slipped through there. */
function isWhole(verdict: ListingSummary | undefined): boolean {
  if (verdict === undefined || !verdict.complete) return false;
  return verdict.drift.length === 0 && verdict.duplicates === 0;
}
