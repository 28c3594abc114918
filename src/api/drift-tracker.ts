import type { AgentAuthError } from "../errors.js";
import { type Drift, type Page, type ReadOptions, refusedPage } from "./page.js";

/** The ids of the last items: enough to recognise duplicates at page boundaries, in bounded memory. */
export class SeenIds {
  /** The minimum number of last ids that are known, once that many were read; at most twice as many are. */
  static readonly WINDOW = 2_000;
  /** While ids ascend, comparing with the last one shows that an id is new, at a third of the cost of the two sets. */
  #ascending: string[] | undefined = [];
  #recent = new Set<string>();
  #older = new Set<string>();
  #isWhole: boolean;

  /** @param fromTheStart whether the listing begins at the list's own beginning */
  constructor(fromTheStart: boolean) {
    this.#isWhole = fromTheStart;
  }

  /**
   * Whether an unknown item was certainly not read, and is not before the start of the listing.
   *
   * @param coming the number of items that are read until the next lookup: their ids must not evict older ones
   */
  knowsEvery(coming: number): boolean {
    return this.#isWhole && coming <= SeenIds.WINDOW;
  }

  /** The number of items to the left of the read position that are certainly known. */
  get reach(): number {
    return Math.min(this.#ascending?.length ?? this.#recent.size + this.#older.size, SeenIds.WINDOW);
  }

  knows(item: object): boolean {
    const id = readItemId(item);
    if (id === undefined || this.#isAbove(id)) return false;
    this.#fillSets();
    return this.#recent.has(id) || this.#older.has(id);
  }

  /**
   * Keeps only the new items of the page that have an id, at most `max` of them.
   *
   * @param places how many items to leave out at the start of the page (`skip`), and how many of these the page before
   * ended with (`shared`): these are no duplicates
   * @returns the number of the page's items that were processed
   */
  keepNew<T extends object>(page: Page<T>, max: number, { skip, shared }: { skip: number; shared: number }): number {
    const { items } = page;
    let kept = 0;
    let used = skip;
    page.duplicates += skip - shared;
    for (const item of skip === 0 ? items : items.slice(skip)) {
      if (kept >= max) break;
      const id = readItemId(item);
      if (id === undefined) page.unusable.push(page.offset + used);
      else if (this.#isNew(id)) items[kept++] = item;
      else page.duplicates++;
      used++;
    }
    items.length = kept;
    return used;
  }

  #isNew(id: string): boolean {
    if (this.#isAbove(id)) return this.#append(id);
    this.#fillSets();
    if (this.#older.has(id)) return false;
    const before = this.#recent.size;
    if (this.#recent.add(id).size === before) return false;
    // Only when it is full, so that every lookup finds a recent id in one of the two sets.
    if (this.#recent.size >= SeenIds.WINDOW) {
      if (this.#older.size > 0) this.#isWhole = false;
      this.#older = this.#recent;
      this.#recent = new Set();
    }
    return true;
  }

  /** Whether an id follows all others of a list whose ids ascend. */
  #isAbove(id: string): boolean {
    return this.#ascending !== undefined && id > (this.#ascending.at(-1) ?? "");
  }

  #append(id: string): true {
    const ids = this.#ascending ?? [];
    // As many as the two sets would hold.
    if (ids.push(id) >= 2 * SeenIds.WINDOW) {
      ids.splice(0, SeenIds.WINDOW);
      this.#isWhole = false;
    }
    return true;
  }

  #fillSets(): void {
    if (this.#ascending === undefined) return;
    const older = this.#ascending.length >= SeenIds.WINDOW ? SeenIds.WINDOW : 0;
    this.#older = new Set(this.#ascending.slice(0, older));
    this.#recent = new Set(this.#ascending.slice(older));
    this.#ascending = undefined;
  }
}

/** The id by which an item is recognised; undefined where it has none. */
export function readItemId(item: object): string | undefined {
  const { id } = item as { id?: unknown };
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** The changes of a list over the pages of a listing. */
export class DriftSummary {
  readonly drift: Drift[] = [];
  /** The last `item_count`; undefined until a page has one. */
  count: number | undefined;
  /** The `item_count` of the page before the last one that has it. */
  previousCount: number | undefined;
  /** The first `item_count` plus every rise since: how many items the list ever held, deleted ones included. */
  everCounted = 0;
  hasGrown = false;
  /** The number of items that were read again. */
  reread = 0;
  /** How many of the items that were not read were deleted, or moved to before the read position. */
  vanished = 0;
}

/**
 * What to do with a page: go back to the offset `rewind`, or yield its items except the first `skip`, `shared` of which the
 * page before ended with.
 */
export type PageDecision = { skip: number; shared: number } | { rewind: number };

/** A search for the read position. */
interface Search {
  /** The offset that it began at or went back to. */
  readonly begun: number;
  /** By how many items it goes back next; undefined where it only goes forwards. */
  readonly depth: number | undefined;
  /** Whether it goes back for the first time: over as many items as were deleted, also if fewer are remembered. */
  readonly isFirst?: boolean;
  /** Whether every id is remembered that can come before the read position. */
  readonly isExact: boolean;
  /** Whether only the last item that was read marks the read position: the ids of new items replace the others. */
  readonly isFar: boolean;
}

const MAX_STALLED_REPAIRS = 10;

/**
 * Compares each page with the one before it, and keeps the position in a list that changes while it is read.
 *
 * Each page is requested from one item earlier, so that it begins with the last item that was read. Where it does not, the
 * list moved, and the reader goes back until it meets an item that it knows by its id.
 *
 *     list       offset  page   decision
 *     abcdef     0       a b c  skip 0    a b c are new
 *     abcdef     2       c d e  skip 1    c is the last item that was read: d e are new
 *
 * All ids are remembered, from the beginning of the list: what is not known was not read, and each known item is left out by
 * its id. So a page is right that begins with a known item, or at the beginning of the list.
 *
 *     abcdefg    0       a b c  skip 0    a b c are new
 *     bcdefgX    2       d e f  rewind 1  one was deleted, and one added at the end: the count is the same
 *     bcdefgX    1       c d e  skip 0    c is known, and left out: d e are new
 *     bcdefgX    3       e f g  skip 1    f g are new
 *
 * Older ids are forgotten, or the listing began in the middle: then an unknown item may have been read, unless it is behind a
 * known one.
 *
 *     abcdefgh   3       d e f  skip 0    d e f are new; a b c were never read, so their ids are not known
 *     xabcdefgh  5       e f g  skip 1    e is known: f is known too, and g is new
 *
 * Without that overlap only `item_count` shows a change, and the reader goes back over as many items as it fell by.
 */
export class DriftTracker<T extends object> {
  readonly #log: DriftLog;
  readonly #seen: SeenIds;
  /** The id of the last item that was read; undefined where it has none. */
  #last: string | undefined;
  /** An item that was read, and where: what moved before it shows in its place. */
  #anchor: { id: string; offset: number } | undefined;
  #isAnchorLost = false;
  /** How much `item_count` changed since the anchor was read. */
  #change = 0;
  /** The maximum number of items from the read position on that may have been read: 0 until the list changes. */
  #overlap = 0;
  /** By how many items the list grew since that was 0. */
  #inserted = 0;
  /** The furthest offset at which a change was seen, and how many were seen since at no further offset. */
  #repairs = { furthest: -1, stalled: 0 };
  #search: Search | undefined;

  constructor(options: Pick<ReadOptions, "checks" | "onDrift">, seen: SeenIds) {
    this.#log = new DriftLog(options);
    this.#seen = seen;
  }

  get stats(): Readonly<DriftSummary> {
    return this.#log.stats;
  }

  /**
   * Reports what changed, and decides what to do with the page.
   *
   * @param position the offset of the first item that was not read: behind that of a page requested from one item earlier
   * @param grain the offsets that the service accepts are multiples of it
   * @throws `AgentAuthError` `list_changed`, with `resume` before everything that may have been missed
   */
  check(page: Page<T>, position: number, grain = 1): PageDecision {
    const { items, offset } = page;
    const change = this.#log.record(page, position);
    if (!this.#search) this.#log.requireNone(page, position + Math.min(0, change));
    this.#overlap += Math.max(0, change);
    this.#inserted += Math.max(0, change);
    this.#change += change;
    const isCompared = offset < position || this.#search !== undefined;
    const decision = this.#search
      ? this.#find(page, this.#search, grain)
      : offset < position
        ? this.#compare(page, position, change)
        : this.#followCount(page, change, grain);
    if ("rewind" in decision) return decision;
    if (items.slice(decision.shared, this.#overlap).some((item) => readItemId(item) === undefined))
      throw listChanged(page, "the list changed, and its items have no id by which those already read are known");
    this.#overlap = Math.max(0, this.#overlap - items.length);
    if (!this.#search) this.#advance(page, isCompared);
    return decision;
  }

  #advance({ items, offset }: Page<T>, isCompared: boolean): void {
    const { stats } = this.#log;
    const at = items.findIndex((item) => this.#anchor !== undefined && readItemId(item) === this.#anchor.id);
    if (this.#anchor && at >= 0) {
      // A fall of the count moves it to the left, unless that was of items behind it.
      stats.vanished += Math.max(0, offset + at - this.#anchor.offset - this.#change) - (this.#isAnchorLost ? 1 : 0);
      this.#isAnchorLost = false;
    } else if (isCompared && !this.#isAnchorLost) {
      // Until it is seen again, anything may have moved.
      stats.vanished++;
      this.#isAnchorLost = true;
    }
    const last = items.at(-1);
    if (last === undefined) return;
    this.#last = readItemId(last);
    if (this.#isAnchorLost) return;
    this.#anchor = this.#last === undefined ? undefined : { id: this.#last, offset: offset + items.length - 1 };
    this.#change = 0;
  }

  #indexOfLast(items: readonly T[]): number {
    return this.#last === undefined ? -1 : items.findIndex((item) => readItemId(item) === this.#last);
  }

  /** Compares the beginning of a page with the last item that was read. */
  #compare(page: Page<T>, position: number, change: number): PageDecision {
    const { items, offset, pagination } = page;
    const [first] = items;
    if (first && readItemId(first) === this.#last) {
      this.#overlap = 0;
      this.#inserted = 0;
      return { skip: 1, shared: 1 };
    }
    const { next_page_offset: next } = pagination;
    // A page with fewer items than offsets may leave out any of them, also the one that it begins with.
    if (next != null && items.length < next - offset) return { skip: 0, shared: 0 };
    const at = this.#indexOfLast(items);
    const isCounted = at < 0 ? change < 0 : at === change;
    if (!isCounted) this.#log.add({ field: "position", from: offset, to: at < 0 ? -1 : offset + at, offset: position });
    this.#overlap++;
    const decision = this.#find(page, { ...this.#strategy, begun: offset, depth: Math.max(1, -change), isFirst: true });
    if ("rewind" in decision) {
      this.#requireProgress(page, position);
      this.#log.stats.reread++;
      return decision;
    }
    this.#overlap = Math.max(this.#overlap, at < 0 ? items.length : at + 1);
    return { ...decision, shared: 1 };
  }

  /** Without that comparison: goes back over as many items as were deleted. */
  #followCount(page: Page<T>, change: number, grain: number): PageDecision {
    const { offset } = page;
    if (change < 0 && offset > 0) {
      this.#requireProgress(page, offset);
      // One item more than may have moved, to find a known one: required only where ids were forgotten.
      const { isExact, isFar } = this.#strategy;
      const by = isExact ? -change : 1 - change;
      return this.#rewind(offset, by, { depth: by, isExact, isFar }, grain);
    }
    const strategy = this.#strategy;
    const isOutOfReach = !strategy.isExact && this.#overlap > this.#seen.reach;
    if (isOutOfReach && offset > 0 && change > 0)
      return this.#find(page, { ...strategy, begun: offset, depth: undefined });
    return { skip: 0, shared: 0 };
  }

  /** How the read position is found, by what is remembered. */
  get #strategy(): Pick<Search, "isExact" | "isFar"> {
    const isExact = this.#seen.knowsEvery(this.#overlap);
    return { isExact, isFar: !isExact && this.#inserted > 0 && this.#overlap > SeenIds.WINDOW };
  }

  #requireProgress(page: Page<T>, position: number): void {
    const { furthest, stalled } = this.#repairs;
    const isFurther = position > furthest;
    if (!isFurther && stalled >= MAX_STALLED_REPAIRS)
      throw listChanged(page, "the list changes faster than it can be read", page.offset - this.#overlap);
    this.#repairs = { furthest: Math.max(furthest, position), stalled: isFurther ? 0 : stalled + 1 };
  }

  #rewind(offset: number, by: number, search: Omit<Search, "begun">, grain: number): PageDecision {
    const least = Math.max(0, offset - by);
    const rewind = least - (least % grain);
    this.#overlap += offset - rewind;
    this.#log.stats.reread += offset - rewind;
    this.#search = { ...search, begun: rewind };
    return { rewind };
  }

  /** Looks for the read position on a page. */
  #find(page: Page<T>, { begun, depth, isFirst, ...search }: Search, grain = 1): PageDecision {
    const { items, offset, pagination } = page;
    const strategy = this.#strategy;
    const isExact = search.isExact && strategy.isExact;
    const isFar = search.isFar || strategy.isFar;
    const known = items.findIndex((item) => this.#seen.knows(item));
    const at = isFar ? this.#indexOfLast(items) : known;
    if (isExact ? at === 0 || offset === 0 : at >= 0) {
      this.#search = undefined;
      this.#log.requireNone(page, offset);
      // Behind a known item, what is not known was not read.
      return { skip: isExact ? 0 : at, shared: 0 };
    }
    const isAhead = depth === undefined || offset === 0 || (isFar && known >= 0);
    if (!isAhead && (isExact || isFirst || depth < this.#seen.reach))
      return this.#rewind(offset, depth, { depth: 2 * depth, isExact, isFar }, grain);
    if (items.length >= this.#overlap || pagination.next_page_offset == null) {
      const what = "the list changed too much to find the read position again: too few items are known there";
      throw listChanged(page, what, begun);
    }
    this.#search = { begun, depth: undefined, isExact, isFar };
    return { skip: items.length, shared: 0 };
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
   */
  record<T>(page: Page<T>, position: number): number {
    const { stats } = this;
    const { item_count: count, page_size: size } = page.pagination;
    const change = count == null ? 0 : count - (stats.count ?? count);
    this.#compare("item_count", stats.count, count, position);
    // A last page may count its own items only.
    const isLast = count != null && position + page.items.length >= count && size === page.items.length;
    if (!isLast) this.#compare("page_size", this.#pageSize, size, position);
    this.#pageSize = size ?? this.#pageSize;
    if (count != null) {
      stats.everCounted = stats.count === undefined ? count : stats.everCounted + Math.max(0, change);
      stats.previousCount = stats.count;
      stats.count = count;
      stats.hasGrown ||= change > 0;
    }
    return change;
  }

  add(drift: Drift): void {
    this.stats.drift.push(drift);
    this.#options.onDrift?.(drift);
  }

  /** @throws `AgentAuthError` `list_changed` where something changed, with the check `drift` */
  requireNone<T>(page: Page<T>, resume: number): void {
    const [first] = this.stats.drift;
    if (first === undefined || !this.#options.checks.has("drift")) return;
    throw listChanged(page, `the list changed while it was read: ${driftText(first)}`, resume);
  }

  #compare(field: Drift["field"], from: number | undefined, to: number | null | undefined, offset: number): void {
    if (from !== undefined && to != null && from !== to) this.add({ field, from, to, offset });
  }
}

/** What changed, as a part of a sentence. */
function driftText({ field, from, to, offset }: Drift): string {
  if (field !== "position") return `${field} was ${from}, and ${to} at offset ${offset}`;
  return `the last item before offset ${offset} is ${to < 0 ? "not there any more" : `at offset ${to}`}`;
}

/** The error for a list that changed; `resume` is at `offset`, before everything that may have been missed. */
export function listChanged<T>(page: Page<T>, what: string, offset = page.offset): AgentAuthError {
  const resume = Math.max(0, offset);
  const again = `resuming at offset ${resume} may repeat items`;
  return refusedPage("list_changed", page, `${what}; ${again}`, { retryable: true, resume });
}
