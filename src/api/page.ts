import type { ErrorCode } from "../error-codes.js";
import { AgentAuthError, type AgentAuthErrorOptions } from "../errors.js";
import { quote } from "../redact.js";
import type { CallOptions, Check, DeviceSorting, OpenSorting, PaginationOutput, Sorting, SortText } from "./types.js";

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
  subject: string;
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

const COUNTS = ["item_count", "item_start", "item_end", "page_offset", "page_size"] as const;
/** Numbers that say nothing on a page which does not begin at a multiple of the page size. */
const PAGE_COUNTS = ["page_count", "page_index"] as const;

/**
 * Validates a page's numbers against each other and the request (`service.md`, PaginationOutput). An absent or null
 * number contradicts nothing.
 *
 * @returns the next offset as the service sent it, null at the end of the list, or the error to throw once the page's
 * items were yielded
 * @throws `AgentAuthError` `bad_pagination` where the items themselves may not be those of the request
 */
export function validatePagination<T>(page: Page<T>): number | null | AgentAuthError {
  const numbers: Record<string, unknown> = { ...page.pagination };
  const { page_size: size } = page.pagination;
  const isAligned = size == null || page.offset % size === 0;
  for (const name of isAligned ? [...COUNTS, ...PAGE_COUNTS] : COUNTS) {
    const value = numbers[name];
    if (value != null && !isCount(value))
      throw inconsistentPageError(page, `${name} is ${quote(value, 60)}, not a whole number`);
  }
  const { item_count: count, item_start: start, item_end: end, page_offset: offset } = page.pagination;
  const length = page.items.length;
  if (offset != null && offset !== page.offset)
    throw inconsistentPageError(page, `page_offset is ${offset}, but offset ${page.offset} was requested`);
  if (length > 0 && start != null && end != null && end - start + 1 !== length) {
    const what = `item_start ${start} and item_end ${end} do not fit the ${length} items of the page`;
    throw inconsistentPageError(page, what);
  }
  if (length > 0 && count != null && (end ?? length) > count)
    throw inconsistentPageError(page, `item_count is ${count}, but the page holds items up to ${end ?? length}`);
  const next = numbers["next_page_offset"] ?? null;
  if (next === null) return null;
  if (!isCount(next)) return inconsistentPageError(page, `next_page_offset is ${quote(next, 60)}, not a whole number`);
  if (next <= page.offset) {
    const what = `next_page_offset is ${next} on the page at offset ${page.offset}: the list does not advance`;
    return refusedPage("pagination_loop", page, what);
  }
  return next;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function inconsistentPageError<T>(page: Page<T>, what: string): AgentAuthError {
  return refusedPage("bad_pagination", page, `the page at offset ${page.offset} contradicts itself: ${what}`);
}

/** An error of class `refused` about a page, with its address. */
export function refusedPage<T>(
  code: ErrorCode,
  page: Page<T>,
  what: string,
  more: Pick<AgentAuthErrorOptions, "retryable" | "resume" | "hint" | "remedy"> = {},
): AgentAuthError {
  const { url, requestId, response } = page;
  const details = { class: "refused", status: response.status, requestId, url, response } as const;
  return new AgentAuthError(code, `${url}: ${what}`, { ...more, ...details });
}

/** Compares the order that a list was requested in with the one that its pages have. */
export class OrderCheck {
  readonly #options: Pick<ReadOptions, "checks" | "sort" | "onSortingIgnored">;
  #isReported = false;
  /** The last value of the field that the items are sorted by. */
  #last: string | number | undefined;
  /** The values of `status` that came before the last one. */
  readonly #passed = new Set<string | number>();

  constructor(options: Pick<ReadOptions, "checks" | "sort" | "onSortingIgnored">) {
    this.#options = options;
  }

  /**
   * Checks the next page, before its items are yielded.
   *
   * @param hasChanged whether the list changed while it was read: the pages are then in order each by itself alone
   * @throws `AgentAuthError` `sorting_ignored`, with the check `order`
   */
  check(page: Page<object>, hasChanged: boolean): void {
    const { checks, sort: requested, onSortingIgnored } = this.#options;
    if (requested === undefined || (requested.field ?? requested.direction) === undefined) return;
    const applied = page.sorting;
    if (!isApplied(requested, applied)) {
      const what = `${orderText(requested)} was requested, and the answer names ${orderText(applied)}`;
      if (checks.has("order")) throw sortingIgnoredError(page, what);
      if (!this.#isReported) onSortingIgnored?.({ requested, applied });
      this.#isReported = true;
    }
    const field = requested.field ?? applied?.field;
    const direction = requested.direction ?? applied?.direction;
    if (!checks.has("order") || field == null || direction == null) return;
    if (hasChanged) {
      this.#last = undefined;
      this.#passed.clear();
    }
    for (const [index, item] of page.items.entries()) {
      const value = sortedValue(item, field);
      const last = this.#last;
      // Where the service puts items without a value is its own affair.
      if (value === undefined) continue;
      this.#last = value;
      if (last === undefined || last === value) continue;
      const [before, after] = isSameText(direction, "desc") ? [value, last] : [last, value];
      if (field === "status" ? this.#hasPassed(last, value) : isSurelyAfter(before, after)) {
        const where = `${quote(value, 60)} at offset ${page.offset + index} comes after ${quote(last, 60)}`;
        throw sortingIgnoredError(page, `${orderText(requested)} was requested, but ${where}`);
      }
    }
  }

  /** The service may order the values of `status` as it likes, but each of them comes in one place. */
  #hasPassed(last: string | number, value: string | number): boolean {
    this.#passed.add(last);
    return this.#passed.has(value);
  }
}

/** Whether the order of a list is not known to be one in which items move: by a field that changes, other than the id. */
export function hasSteadyOrder({ sorting }: Pick<Page<object>, "sorting">, requested: OpenSorting | undefined) {
  return (sorting?.field ?? requested?.field ?? "id") === "id";
}

function isApplied(requested: OpenSorting, applied: Sorting | undefined): boolean {
  const { field, direction } = requested;
  return (
    applied !== undefined &&
    (field === undefined || applied.field === field) &&
    (direction === undefined || isSameText(applied.direction, direction))
  );
}

/** Whether a service means this direction: some write it in capitals. */
function isSameText(direction: string | null | undefined, other: string): boolean {
  return direction?.toLowerCase() === other.toLowerCase();
}

export function orderText(sorting: OpenSorting | Sorting | undefined): string {
  if (sorting === undefined || (sorting.field ?? sorting.direction) == null) return "no order";
  const { field, direction } = sorting;
  return `the order ${quote(`${field ?? ""}${direction == null ? "" : `:${direction}`}`, 60)}`;
}

function sortingIgnoredError(page: Page<object>, what: string) {
  const hint = "the option sorting sets how the order is sent";
  return refusedPage("sorting_ignored", page, what, { hint, remedy: { action: "configure", option: "sorting" } });
}

/** What an item is sorted by: snapshots by their time. */
function sortedValue(item: object, field: string): string | number | undefined {
  const own = (item as Readonly<Record<string, unknown>>)[field];
  const value = typeof own === "object" && own !== null ? (own as { at?: unknown }).at : own;
  return typeof value === "string" || typeof value === "number" ? value : undefined;
}

/** The texts that a service may compare: code units, letters without case, or the bytes of UTF-8. */
const KEYS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.toLowerCase(),
  (text) => Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""),
];
let collators: readonly Intl.Collator[] | undefined;

/** Whether a value is after another by every rule that a service may sort by: it documents none. */
function isSurelyAfter(one: string | number, other: string | number): boolean {
  if (typeof one !== "string" || typeof other !== "string") return typeof one === typeof other && one > other;
  if (!KEYS.every((key) => key(one) > key(other))) return false;
  collators ??= [false, true].map((ignorePunctuation) => new Intl.Collator("und", { ignorePunctuation }));
  return collators.every((collator) => collator.compare(one, other) > 0);
}
