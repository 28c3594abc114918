import type { Drift, ListOptions, Page } from "./page.js";
import { compareNumbers, refusedPage } from "./page-numbers.js";
import { idOf, SeenIds } from "./seen-ids.js";

/** What becomes of a page: it is given out but for the items that are skipped, or reading goes back. */
export type Step = { skip: number } | { back: number };

/** What the pages of a listing told about the list, one after the other. */
export interface Told {
  /** What changed. */
  drift: Drift[];
  /** The last `item_count`, and the one before it; undefined where there was none. */
  count: number | undefined;
  before: number | undefined;
  /** The first `item_count` and every rise since: so many items there were, deleted ones included. */
  ever: number;
  /** Whether `item_count` ever rose. */
  rose: boolean;
  /** Items that reading went back over. */
  reread: number;
}

const MAX_STALLED_REPAIRS = 10;

/**
 * Holds each page against the one before it, and keeps the place in a list that changes.
 *
 * Where `item_count` falls, items have moved to the left and some may have slipped behind the read position: reading
 * goes back by as many, and looks for an item that is known by its id. What follows it is unread. A page that holds none
 * says that more was deleted than the count tells, or that ids are forgotten: then reading goes back further, or on
 * until a known item comes. Where `item_count` rises by more than ids are remembered, what comes again is passed over
 * in the same way. Where no known item comes, the place is lost, and that is an error.
 */
export class Seams<T extends object> {
  readonly told: Told = { drift: [], count: undefined, before: undefined, ever: 0, rose: false, reread: 0 };
  readonly #options: Pick<ListOptions, "strict" | "onDrift">;
  readonly #seen: SeenIds;
  // Its numbers alone: a page that is kept keeps its items.
  #numbers: Page<T>["pagination"] = {};
  /** At the most so many items from the read position on were given out already. */
  #behind = 0;
  /** Set while the place is looked for: how far reading went back, and where to. */
  #search: { depth: number; begun: number } | undefined;
  /** Whether something was added since nothing was behind: what nobody knows may then stand among what was read. */
  #rose = false;
  /** The id of the last item that was read, not counting what is read again. */
  #lastRead: string | undefined;
  #furthest = -1;
  #stalled = 0;

  constructor(options: Pick<ListOptions, "strict" | "onDrift">, seen: SeenIds) {
    this.#options = options;
    this.#seen = seen;
  }

  /**
   * Reports what changed, and says what becomes of the page.
   *
   * @throws `AgentAuthError` `list_changed`, with `resume` before everything that may have been missed
   */
  check(page: Page<T>): Step {
    const change = this.#report(page);
    if (change < 0 && page.offset > 0) return this.#fallen(page, -change);
    this.#rose ||= change > 0;
    this.#behind += Math.max(0, change);
    if (change > 0 && page.offset > 0 && !this.#search && !this.#recognisesAll && this.#behind > this.#reach) {
      // What was given out last stands further to the right than ids reach back: only going on finds it.
      return this.#goBack(page.offset, 1, Number.POSITIVE_INFINITY);
    }
    if (page.items.slice(0, this.#behind).some((item) => idOf(item) === undefined)) {
      throw changed(page, "the list changed, and its items have no id by which those already read are known");
    }
    const step = this.#search ? this.#find(page, this.#search) : { skip: 0 };
    if ("skip" in step) this.#advance(page);
    return step;
  }

  /** Keeps count of what may still come again, once it is settled what is given out of a page. */
  #advance({ items }: Page<T>): void {
    const last = items.at(-1);
    // Deletions alone leave what was read in one piece: what nobody knows behind it is unread.
    const isBehindIt = !this.#search && !this.#rose && last !== undefined && !this.#seen.knows(last);
    const isPast = isBehindIt || this.#holdsLastRead(items);
    this.#behind = isPast ? 0 : Math.max(0, this.#behind - items.length);
    if (this.#behind > 0) return;
    this.#rose = false;
    if (last) this.#lastRead = idOf(last);
  }

  #holdsLastRead(items: readonly T[]): boolean {
    return this.#behind > 0 && items.some((item) => idOf(item) === this.#lastRead);
  }

  /** Tells what changed between the page before and this one; gives the difference of their counts. */
  #report(page: Page<T>): number {
    const drift = compareNumbers({ pagination: this.#numbers }, page);
    for (const change of drift) {
      this.told.drift.push(change);
      this.#options.onDrift?.(change);
    }
    const { item_count: count, page_size: size } = page.pagination;
    // A page that does not give a number says nothing about it: what was told before still stands.
    this.#numbers = {
      ...this.#numbers,
      ...(count != null && { item_count: count }),
      ...(size != null && { page_size: size }),
    };
    const counted = drift.find((change) => change.field === "item_count");
    const change = counted ? counted.to - counted.from : 0;
    this.#count(count ?? undefined, change);
    const first = drift[0];
    if (first && this.#options.strict) {
      const what = `${first.field} was ${first.from}, and ${first.to} at offset ${first.offset}`;
      throw changed(page, `the list changed while it was read: ${what}`, page.offset + Math.min(0, change));
    }
    return change;
  }

  #count(count: number | undefined, change: number): void {
    if (count === undefined) return;
    const { told } = this;
    told.ever = told.count === undefined ? count : told.ever + Math.max(0, change);
    told.before = told.count;
    told.count = count;
    told.rose ||= change > 0;
  }

  #fallen(page: Page<T>, gone: number): Step {
    this.#stalled = page.offset > this.#furthest ? 0 : this.#stalled + 1;
    this.#furthest = Math.max(this.#furthest, page.offset);
    if (this.#stalled > MAX_STALLED_REPAIRS) {
      throw changed(page, "the list shrinks faster than it can be read", page.offset - gone);
    }
    // One more, to meet an item that is known: needed at once where ids were forgotten, else only if none comes.
    const by = this.#recognisesAll ? gone : gone + 1;
    return this.#goBack(page.offset, by, by);
  }

  #goBack(offset: number, by: number, depth: number): Step {
    const back = Math.max(0, offset - by);
    this.#behind += offset - back;
    this.told.reread += offset - back;
    this.#search = { depth, begun: back };
    return { back };
  }

  /**
   * Whether an item that is not known was certainly not given out, nor will be forgotten before it comes again: what is
   * new in between is remembered too.
   */
  get #recognisesAll(): boolean {
    return this.#seen.isWhole && this.#behind <= SeenIds.WINDOW;
  }

  /** So many items to the left of the read position are known for certain, whatever is remembered beside them. */
  get #reach(): number {
    return Math.min(this.#seen.size, SeenIds.WINDOW);
  }

  /** Looks for the place where reading stopped, by the items that are known. */
  #find(page: Page<T>, { depth, begun }: { depth: number; begun: number }): Step {
    const { items, offset } = page;
    const recognisesAll = this.#recognisesAll;
    const known = items.findLastIndex((item) => this.#seen.knows(item)) + 1;
    if (recognisesAll ? known > 0 || offset === 0 : this.#rose ? this.#holdsLastRead(items) : known > 0) {
      this.#search = undefined;
      // What stands before a known item was read too, and its id forgotten, unless it was added since.
      return { skip: recognisesAll ? 0 : known };
    }
    if (known === 0 && offset === begun && offset > 0 && (recognisesAll || depth < this.#reach)) {
      return this.#goBack(offset, depth, 2 * depth);
    }
    if (items.length >= this.#behind || page.pagination.next_page_offset == null) throw lost(page, begun);
    return { skip: items.length };
  }
}

function lost<T>(page: Page<T>, resume: number) {
  return changed(page, "the list changed so much that the place in it is lost: too few items are known there", resume);
}

function changed<T>(page: Page<T>, what: string, offset = page.offset) {
  const resume = Math.max(0, offset);
  const again = `from offset ${resume} on, items that were read may come again`;
  return refusedPage("list_changed", page, `${what}; ${again}`, { retryable: true, resume });
}
