import { quote } from "../redact.js";
import type { Page, ReadOptions } from "./page.js";
import { refusedPage } from "./pagination-checks.js";
import type { OpenSorting, Sorting } from "./types.js";

/** Compares the order that a list was requested in with the one that its pages have. */
export class OrderCheck {
  readonly #options: Pick<ReadOptions, "checks" | "sorting" | "onSortingIgnored">;
  #isReported = false;
  /** The last value of the field that the items are sorted by. */
  #last: string | number | undefined;
  /** The values of `status` that came before the last one. */
  readonly #passed = new Set<string | number>();

  constructor(options: Pick<ReadOptions, "checks" | "sorting" | "onSortingIgnored">) {
    this.#options = options;
  }

  /**
   * Checks the next page, before its items are yielded.
   *
   * @param hasChanged whether the list changed while it was read: the pages are then in order each by itself alone
   * @throws `AgentAuthError` `sorting_ignored`, with the check `order`
   */
  check(page: Page<object>, hasChanged: boolean): void {
    const { checks, sorting: requested, onSortingIgnored } = this.#options;
    if (requested === undefined || (requested.field ?? requested.direction) === undefined) return;
    const applied = page.sorting;
    if (!isApplied(requested, applied)) {
      if (checks.has("order")) {
        throw ignored(page, `${orderText(requested)} was requested, and the answer names ${orderText(applied)}`);
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
      const [before, after] = direction === "desc" ? [value, last] : [last, value];
      if (field === "status" ? this.#hasPassed(last, value) : isSurelyAfter(before, after)) {
        const where = `${quote(value, 60)} at offset ${page.offset + index} comes after ${quote(last, 60)}`;
        throw ignored(page, `${orderText(requested)} was requested, but ${where}`);
      }
    }
  }

  /** The service may order the values of `status` as it likes, but each of them comes in one place. */
  #hasPassed(last: string | number, value: string | number): boolean {
    this.#passed.add(last);
    return this.#passed.has(value);
  }
}

function isApplied(requested: OpenSorting, applied: Sorting | undefined): boolean {
  const { field, direction } = requested;
  return (
    applied !== undefined &&
    (field === undefined || applied.field === field) &&
    (direction === undefined || applied.direction === direction)
  );
}

/** An order as `--sort` has it. */
export function orderText(sorting: OpenSorting | Sorting | undefined): string {
  if (sorting === undefined || (sorting.field ?? sorting.direction) == null) return "no order";
  const { field, direction } = sorting;
  return `the order ${quote(`${field ?? ""}${direction == null ? "" : `:${direction}`}`, 60)}`;
}

function ignored(page: Page<object>, what: string) {
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
