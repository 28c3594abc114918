import type { ErrorCode } from "../error-codes.js";
import { AgentAuthError, type AgentAuthErrorOptions } from "../errors.js";
import { quote } from "../redact.js";
import type { Page, ReadOptions } from "./page.js";
import type { OpenSorting, Sorting } from "./types.js";

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
  if (offset != null && offset !== page.offset) {
    throw inconsistentPageError(page, `page_offset is ${offset}, but offset ${page.offset} was requested`);
  }
  if (length > 0 && start != null && end != null && end - start + 1 !== length) {
    throw inconsistentPageError(
      page,
      `item_start ${start} and item_end ${end} do not fit the ${length} items of the page`,
    );
  }
  if (length > 0 && count != null && (end ?? length) > count) {
    throw inconsistentPageError(page, `item_count is ${count}, but the page holds items up to ${end ?? length}`);
  }
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
  return new AgentAuthError(code, `${page.url}: ${what}`, {
    ...more,
    class: "refused",
    status: page.response.status,
    requestId: page.requestId,
    url: page.url,
    response: page.response,
  });
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
      if (checks.has("order")) {
        throw sortingIgnoredError(
          page,
          `${orderText(requested)} was requested, and the answer names ${orderText(applied)}`,
        );
      }
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
export function hasSteadyOrder(
  { sorting }: Pick<Page<object>, "sorting">,
  requested: OpenSorting | undefined,
): boolean {
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
