import type { CallOptions, Check } from "./call-options.js";
import type { DeviceSorting, OpenSorting, PaginationOutput, Sorting, SortText } from "./types.js";

/** One page of a listing. */
export interface Page<T> {
  /** The items of this page that no page before it had, in the service's order. */
  items: T[];
  /** The page's numbers, as the service sent them. */
  pagination: PaginationOutput;
  /** The order that the service says it applied. */
  sorting: Sorting | undefined;
  /** The offset of the first item that no page before this one ended with, zero-based. */
  offset: number;
  /** How many items were left out because a page before this one had them; the one that both pages share is not counted. */
  duplicates: number;
  /** The offsets of the items that were left out because they have no id. */
  unusable: number[];
  /** The request id that the service sent. */
  requestId: string | undefined;
  /** The address of the response, without its query; not enumerable. */
  readonly url: string;
  /** The response; not enumerable. */
  readonly response: Response;
}

/** How a listing ended. */
export interface ListingSummary {
  /** The number of items that were yielded. */
  yielded: number;
  /** Items that the service's last `item_count` promised from the starting offset on; undefined when it sent none. */
  expected: number | undefined;
  /** Items left out because an earlier page had them. */
  duplicates: number;
  /** What changed while the list was read. */
  drift: readonly Drift[];
  /** How many items may be missing at the end of the list: fewer ids came than the service counts. */
  missing: number;
  /** True when the last page was reached and no item may be missing. */
  complete: boolean;
  /**
   * Why a shift of the list between two of its pages could not be seen; undefined where each page began with the last item
   * of the one before.
   */
  unseenShifts: UnseenShifts | undefined;
  /** The offset to continue at, when the listing ended at `limit`; else undefined. */
  next: number | undefined;
}

/**
 * Why a page did not begin with the last item of the page before: the service answers with another offset (`aligned`) or an
 * error (`refused`), a page has a single item (`page_size`), or fewer items than offsets (`gaps`).
 */
export type UnseenShifts = "aligned" | "refused" | "page_size" | "gaps";

/** How a list is read. Each option has a default. */
export interface ListOptions<Order extends OpenSorting = DeviceSorting> extends CallOptions {
  /** Items to ask for in a page; an integer of at least 1. Default: what the service chooses. */
  pageSize?: number | undefined;
  /** The order to ask for, such as `title:desc`. Default: what the service chooses. */
  sort?: Order | SortText<Order> | undefined;
  /** Items in total. Default: all. */
  limit?: number | undefined;
  /**
   * Pages in flight at once; 1 requests a page when it is needed. Default: 1 until two pages in a row take 20 ms (of 1,000
   * items: 40 ms), then at most 4 among all listings of the client.
   */
  concurrency?: number | undefined;
  /** The offset to begin at, zero-based: what `resume` of an error says. Default 0. */
  offset?: number | undefined;
  /** The maximum number of pages, as a guard against a list without end. Default 100,000. */
  maxPages?: number | undefined;
  /**
   * The checks that turn what is otherwise reported, or read as it is, into errors: `true` are `shape`, `order` and `drift`,
   * `"all"` are those with `nulls` and `fields`. Default false.
   */
  strict?: boolean | "all" | readonly Check[] | undefined;
  /** Called for each number that changes while the list is read. */
  onDrift?: ((drift: Drift) => void) | undefined;
  /** Called once, before the first item, where the answer does not name the requested order as the one it applied. */
  onSortingIgnored?: ((ignored: IgnoredSorting) => void) | undefined;
  /** Called with the summary when the listing ends; not when it throws or is left early. */
  onEnd?: ((summary: ListingSummary) => void) | undefined;
}

export interface ReadOptions extends Omit<ListOptions<OpenSorting>, "strict" | "sort"> {
  /** The order in parts. */
  sort?: OpenSorting | undefined;
  /** What is an error. */
  checks: ReadonlySet<Check>;
  /** What is listed, for messages. */
  about: string;
  /** Whether the list is read once more: then not a third time. */
  isSecond?: true;
}

/** An order that the service did not apply, by its own answer. */
export interface IgnoredSorting {
  /** The order of the request. */
  requested: OpenSorting;
  /** The order that the answer names; undefined where it names none. */
  applied: Sorting | undefined;
}

/** A number of the list that changed while the list was read. */
export interface Drift {
  /** The number that changed; `position` is the offset of the last item that was read. */
  field: "item_count" | "page_size" | "position";
  /** What it was on the pages before. */
  from: number;
  /** What it is on this page; of a position -1 where the item is not on it. */
  to: number;
  /** The offset of the first item that was not read when it showed. */
  offset: number;
}
