import type { AgentAuthError } from "../errors.js";
import type { Drift, Page, ReadOptions } from "./page.js";
import { refusedPage } from "./page-checks.js";
import { itemIdOf, Overlap, type SeenIds } from "./seen-ids.js";

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

/** What a page that is read again shows of the read position. */
export interface PageObservation {
  /** The page's offset. */
  readonly offset: number;
  /** The number of its items up to and including the last one whose id is known; 0 when none is. */
  readonly known: number;
  /** Whether the page holds the last item that was read. */
  readonly holdsLastRead: boolean;
}

/** How the read position is found again. */
export interface SearchStrategy {
  /** Whether every id is remembered: known items are then skipped one by one, else all up to the last known one. */
  readonly isExact: boolean;
  /** Whether the read position is on this page. */
  isFound(observation: PageObservation): boolean;
}

/**
 * All ids are remembered, from the beginning of the list: what is not known was not read. Nothing has to be skipped,
 * because each known item is left out by its id.
 *
 *     list       offset  page  decision
 *     abcdef     0       a b   skip 0    a b are new
 *     bcdef      2       d e   rewind 1  one item fewer: c may have moved to offset 1
 *     bcdef      1       c d   rewind 0  neither is known, so more may have moved
 *     bcdef      0       b c   skip 0    b is known: c is new
 */
const everyId: SearchStrategy = { isExact: true, isFound: ({ known, offset }) => known > 0 || offset === 0 };

/**
 * Older ids are forgotten, or the listing began in the middle, and items were only deleted. The items read are then
 * contiguous: everything up to the last known item was read, and everything behind it is new.
 *
 *     list       offset  page  decision
 *     abcdefgh   2       c d   skip 0    c d are new; a b were never read, so their ids are not known
 *     bcdefgh    4       f g   rewind 2  one item fewer, and one more to meet a known item
 *     bcdefgh    2       d e   skip 1    d is known: e is new
 */
const recentIds: SearchStrategy = { isExact: false, isFound: ({ known }) => known > 0 };

/**
 * As {@link recentIds}, but items were inserted too, so that new ones may be among those that were read. Only the last
 * item that was read marks the read position.
 *
 *     list         offset  page  decision
 *     abcdefgh     2       c d   skip 0    c d are new
 *     xyzabcdefgh  4       b c   rewind 3  three items more: further than the two known ids reach
 *     xyzabcdefgh  3       a b   skip 2    d is not here: read on
 *     xyzabcdefgh  5       c d   skip 2    d is here, and everything up to it was read
 *     xyzabcdefgh  7       e f   skip 0    e f are new
 */
const lastItem: SearchStrategy = { isExact: false, isFound: ({ holdsLastRead }) => holdsLastRead };

/** What to do with a page: yield its items except the first `skip`, or go back to the offset `rewind`. */
export type PageDecision = { skip: number } | { rewind: number };

const MAX_STALLED_REPAIRS = 10;

/**
 * Compares each page with the one before it, and keeps the position in a list that changes while it is read.
 *
 * A deletion moves items to the left, some of them behind the reader. A fall of `item_count` says how many at most, so
 * the reader rewinds by as many and looks for an item that it knows by its id. Where none is known, more was deleted than
 * the count says, and the reader rewinds further.
 *
 *     list       offset  page  decision
 *     abcdef     0       a b   skip 0    a b are new
 *     abcdef     2       c d   skip 0    c d are new
 *     acdef      4       f     rewind 3  one item fewer: e may have moved to offset 3
 *     acdef      3       e f   rewind 2  neither is known, so more may have moved
 *     acdef      2       d e   skip 0    d is known: e is new
 *     acdef      4       f     skip 0    f is new
 *
 * An insertion moves items to the right, so that some come twice. A rise of `item_count` says how many at most.
 *
 *     list       offset  page  decision
 *     abcdef     0       a b   skip 0    a b are new
 *     xabcdef    2       b c   skip 0    one item more: b is known and left out, c is new
 *     xabcdef    4       d e   skip 0    d e are new
 *
 * Ids are remembered of the last items only. {@link everyId}, {@link recentIds} and {@link lastItem} are the strategies to
 * find the position again by what is remembered. Where none finds it, the listing ends with an error.
 */
export class DriftTracker<T extends object> {
  readonly #log: DriftLog;
  readonly #seen: SeenIds;
  readonly #overlap = new Overlap<T>();
  /** The furthest offset at which a deletion was seen, and how many were seen since at no further offset. */
  #repairs = { furthest: -1, stalled: 0 };
  /** During a search: by how many items the reader rewound at most, and to which offset. */
  #search: { depth: number; begun: number } | undefined;

  constructor(options: Pick<ReadOptions, "checks" | "onDrift">, seen: SeenIds) {
    this.#log = new DriftLog(options);
    this.#seen = seen;
  }

  /** The changes seen so far. */
  get stats(): Readonly<DriftSummary> {
    return this.#log.stats;
  }

  /**
   * Reports what changed, and decides what to do with the page.
   *
   * @throws `AgentAuthError` `list_changed`, with `resume` before everything that may have been missed
   */
  check(page: Page<T>): PageDecision {
    const { items, offset } = page;
    const change = this.#log.record(page);
    if (change < 0 && offset > 0) return this.#repair(page, -change);
    if (change > 0) {
      this.#overlap.insert(change);
      const isOutOfReach = !this.#strategy.isExact && this.#overlap.size > this.#seen.reach;
      // The last item that was read is too far to the right: only reading on finds it, no further rewind.
      if (offset > 0 && !this.#search && isOutOfReach) return this.#rewind(offset, 1, Number.POSITIVE_INFINITY);
    }
    if (items.slice(0, this.#overlap.size).some((item) => itemIdOf(item) === undefined)) {
      throw listChanged(page, "the list changed, and its items have no id by which those already read are known");
    }
    const decision = this.#search ? this.#find(page, this.#search) : { skip: 0 };
    if ("skip" in decision) this.#advance(items);
    return decision;
  }

  get #strategy(): SearchStrategy {
    if (this.#seen.knowsEvery(this.#overlap.size)) return everyId;
    return this.#overlap.hasInsertions ? lastItem : recentIds;
  }

  /** Rewinds over as many items as were deleted. */
  #repair(page: Page<T>, deleted: number): PageDecision {
    const { furthest, stalled } = this.#repairs;
    const isFurther = page.offset > furthest;
    if (!isFurther && stalled >= MAX_STALLED_REPAIRS) {
      throw listChanged(page, "the list shrinks faster than it can be read", page.offset - deleted);
    }
    this.#repairs = { furthest: Math.max(furthest, page.offset), stalled: isFurther ? 0 : stalled + 1 };
    // One item more than may have moved, to find a known one: required only where ids were forgotten.
    const by = this.#strategy.isExact ? deleted : deleted + 1;
    return this.#rewind(page.offset, by, by);
  }

  #rewind(offset: number, by: number, depth: number): PageDecision {
    const rewind = Math.max(0, offset - by);
    this.#overlap.size += offset - rewind;
    this.#log.stats.reread += offset - rewind;
    this.#search = { depth, begun: rewind };
    return { rewind };
  }

  /** Looks for the read position on a page that is read again. */
  #find(page: Page<T>, { depth, begun }: { depth: number; begun: number }): PageDecision {
    const { items, offset } = page;
    const known = items.findLastIndex((item) => this.#seen.knows(item)) + 1;
    const { isExact, isFound } = this.#strategy;
    if (isFound({ offset, known, holdsLastRead: this.#overlap.holdsLastRead(items) })) {
      this.#search = undefined;
      return { skip: isExact ? 0 : known };
    }
    const mayRewind = known === 0 && offset === begun && offset > 0;
    if (mayRewind && (isExact || depth < this.#seen.reach)) return this.#rewind(offset, depth, 2 * depth);
    if (items.length >= this.#overlap.size || page.pagination.next_page_offset == null) {
      const what = "the list changed too much to find the read position again: too few items are known there";
      throw listChanged(page, what, begun);
    }
    return { skip: items.length };
  }

  #advance(items: readonly T[]): void {
    const last = items.at(-1);
    // After deletions alone, the items read are contiguous: an unknown item behind them was not read.
    const isContiguous = !this.#search && !this.#overlap.hasInsertions;
    this.#overlap.advance(items, isContiguous && last !== undefined && !this.#seen.knows(last));
  }
}

/** Compares the numbers of each page with those of the page before it, and reports every change. */
class DriftLog {
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
function listChanged<T>(page: Page<T>, what: string, offset = page.offset): AgentAuthError {
  const resume = Math.max(0, offset);
  const again = `resuming at offset ${resume} may repeat items`;
  return refusedPage("list_changed", page, `${what}; ${again}`, { retryable: true, resume });
}
