import type { PaginationOutput, Sorting } from "./types.js";

/** One page of a listing. */
export interface Page<T> {
  /** The items of this page that no page before it had, in the service's order. */
  items: T[];
  /** The page's numbers, as the service sent them. */
  pagination: PaginationOutput;
  /** The order that the service says it applied. */
  sorting: Sorting | undefined;
  /** The offset that was asked for, zero-based. */
  offset: number;
  /** How many items were left out because a page before this one had them. */
  duplicates: number;
  /** The request id that the service sent. */
  requestId: string | undefined;
  /** The address that answered, without its query; not enumerable. */
  readonly url: string;
  /** The answer as it came, not enumerable. */
  readonly response: Response;
}

/** How a listing ended. */
export interface ListingSummary {
  /** Items given out. */
  yielded: number;
  /** Items that the service's last `item_count` promised from the starting offset on; undefined when it gave none. */
  expected: number | undefined;
  /** Items left out because an earlier page had them. */
  duplicates: number;
  /** What changed while the list was read. */
  drift: readonly Drift[];
  /** True when the last page was reached and nothing is known to be missing. */
  complete: boolean;
  /** Where to go on, when the listing ended at `maxItems`; else undefined. */
  next: number | undefined;
}

/** How a list is read. Each option has a default. */
export interface ListOptions {
  /** Items to ask for in a page; an integer of at least 1. Default: what the service chooses. */
  pageSize?: number | undefined;
  /** Items in all. Default: all there are. */
  maxItems?: number | undefined;
  /** Pages in flight at once. Default 1: a page is asked for when it is needed. */
  concurrency?: number | undefined;
  /** The offset to begin at, zero-based: what `resume` of an error says. Default 0. */
  from?: number | undefined;
  /** Pages to read at the most, as a guard against a service that never ends. Default 100,000. */
  maxPages?: number | undefined;
  /** Makes drift, and items that are not of the documented shape, errors. Default false. */
  strict?: boolean | undefined;
  /** Ends the listing, at whatever it waits for. */
  signal?: AbortSignal | undefined;
  /** Hears of numbers that change while the list is read. */
  onDrift?: ((drift: Drift) => void) | undefined;
  /** Hears how the listing ended; not called when it throws or is left early. */
  onEnd?: ((verdict: ListingSummary) => void) | undefined;
}

/** A number of the list that changed while the list was read. */
export interface Drift {
  /** The number that changed. */
  field: "item_count" | "page_size";
  /** What it was on the pages before. */
  from: number;
  /** What it is on this page. */
  to: number;
  /** The offset of the page that showed it. */
  offset: number;
}
