import { AgentAuthError } from "../errors.js";
import { checkNumbers, compareNumbers, type Drift } from "./page-numbers.js";
import { type FetchPage, PageWindow } from "./page-window.js";
import type { PaginationOutput, Sorting } from "./types.js";

/** One page of a listing. */
export interface Page<T> {
  /** The items of this page that no page before it had, in the service's order. */
  items: T[];
  /** The page's numbers, as the service gave them; undefined when it gave none. */
  pagination: PaginationOutput | undefined;
  /** The order that the service says it applied. */
  sorting: Sorting | undefined;
  /** The offset that was asked for, zero-based. */
  offset: number;
  /** How many items were left out because a page before this one had them. */
  duplicates: number;
  /** The request id that the service sent. */
  requestId: string | undefined;
  /** The answer as it came, not enumerable. */
  readonly response: Response;
}

/** How a listing ended. */
export interface Verdict {
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
  onEnd?: ((verdict: Verdict) => void) | undefined;
}

const MAX_EMPTY_PAGES = 50;
const MAX_STALLED_REPAIRS = 10;
const DEFAULT_MAX_PAGES = 100_000;

interface Progress {
  yielded: number;
  duplicates: number;
  drift: Drift[];
  /** Offset of the first item that was not given out. */
  resume: number;
}

/**
 * Reads pages in order until the service says there are no more.
 *
 * Complete or an error: numbers that contradict each other, an offset that does not advance, a list without end and a
 * list whose end comes too early are errors, with `resume` set and of class `partial` once items were given out.
 *
 * When `item_count` falls between two pages, items have moved to the left and one may have slipped behind the seam: as
 * many items before the seam are read again, and those known already are dropped by id.
 */
export async function* readPages<T extends object>(
  fetchPage: FetchPage<T>,
  options: ListOptions,
): AsyncGenerator<Page<T>, Verdict, undefined> {
  const from = options.from ?? 0;
  const limit = options.maxItems ?? Number.POSITIVE_INFINITY;
  const progress: Progress = { yielded: 0, duplicates: 0, drift: [], resume: from };
  const window = new PageWindow(fetchPage, options);
  const seams = new Seams(from, options, progress);
  const seen = new SeenIds();
  let emptyRun = 0;
  try {
    for (let pages = 1; ; pages++) {
      if (pages > (options.maxPages ?? DEFAULT_MAX_PAGES)) throw tooManyPages(pages - 1);
      const position = progress.resume;
      const page = await window.take(position);
      const next = checkNumbers(page);
      const back = seams.repairFrom(page);
      if (back !== undefined) {
        window.readSerially();
        progress.resume = back;
        continue;
      }
      const raw = page.items.length;
      const used = seen.keepNew(page, limit - progress.yielded);
      progress.yielded += page.items.length;
      progress.duplicates += page.duplicates;
      emptyRun = raw === 0 ? emptyRun + 1 : 0;
      if (emptyRun > MAX_EMPTY_PAGES) throw loop(`${MAX_EMPTY_PAGES} empty pages came in a row`);
      const left = limit - progress.yielded;
      if (typeof next === "number" && left > 0) window.expect(page, next, left);
      yield page;
      progress.resume = used < raw || typeof next !== "number" ? position + used : next;
      if (left <= 0)
        return verdict(progress, page, from, used < raw || typeof next === "number" ? progress.resume : undefined);
      if (next === null) return ended(verdict(progress, page, from, undefined));
      if (typeof next !== "number") throw next;
    }
  } catch (thrown) {
    throw interrupted(thrown, progress);
  } finally {
    window.stop();
  }
}

/** Compares each page with the one before it. */
class Seams<T extends object> {
  readonly #from: number;
  readonly #options: ListOptions;
  readonly #progress: Progress;
  // Its numbers alone: a page that is kept keeps its items.
  #previous: Pick<Page<T>, "pagination"> | undefined;
  #furthest = -1;
  #stalled = 0;

  constructor(from: number, options: ListOptions, progress: Progress) {
    this.#from = from;
    this.#options = options;
    this.#progress = progress;
  }

  /** Reports what changed; gives the offset to read again from when items may have slipped behind the seam. */
  repairFrom(page: Page<T>): number | undefined {
    const previous = this.#previous;
    this.#previous = { pagination: page.pagination };
    const drift = previous ? compareNumbers(previous, page) : [];
    for (const change of drift) {
      this.#progress.drift.push(change);
      this.#options.onDrift?.(change);
    }
    const first = drift[0];
    if (first && this.#options.strict) {
      throw new AgentAuthError(
        "list_changed",
        `the list changed while it was read: ${first.field} was ${first.from}, and ${first.to} at offset ${first.offset}`,
        { class: "refused", retryable: true },
      );
    }
    const count = drift.find((change) => change.field === "item_count");
    const gone = count ? count.from - count.to : 0;
    if (gone <= 0 || page.offset <= this.#from) return undefined;
    this.#stalled = page.offset > this.#furthest ? 0 : this.#stalled + 1;
    this.#furthest = Math.max(this.#furthest, page.offset);
    if (this.#stalled > MAX_STALLED_REPAIRS) {
      throw new AgentAuthError("list_changed", "the list shrinks faster than it can be read", {
        class: "refused",
        retryable: true,
      });
    }
    return Math.max(this.#from, page.offset - Math.min(gone, SeenIds.WINDOW));
  }
}

/** The ids of the last items: enough to recognise what comes twice at a seam, in bounded memory. */
class SeenIds {
  static readonly WINDOW = 2_000;
  #recent = new Set<string>();
  #older = new Set<string>();

  /**
   * Leaves in the page the items that are new, `room` of them at the most.
   *
   * @returns how many of the page's items were looked at
   */
  keepNew<T extends object>(page: Page<T>, room: number): number {
    const { items } = page;
    let kept = 0;
    let used = 0;
    for (const item of items) {
      if (kept >= room) break;
      used++;
      if (this.#isNew((item as { id?: unknown }).id)) items[kept++] = item;
      else page.duplicates++;
    }
    items.length = kept;
    return used;
  }

  #isNew(id: unknown): boolean {
    if (typeof id !== "string") return true;
    if (this.#older.has(id)) return false;
    if (this.#recent.size >= SeenIds.WINDOW) {
      this.#older = this.#recent;
      this.#recent = new Set();
    }
    const before = this.#recent.size;
    return this.#recent.add(id).size > before;
  }
}

function verdict<T>(progress: Progress, last: Page<T>, from: number, next: number | undefined): Verdict {
  const { yielded, duplicates, drift } = progress;
  const count = last.pagination?.item_count;
  const expected = typeof count === "number" ? Math.max(0, count - from) : undefined;
  // Without drift a duplicate is a row that the service counts twice; with drift it is a row that was read twice.
  const accounted = drift.length === 0 ? yielded + duplicates : yielded;
  return {
    yielded,
    expected,
    duplicates,
    drift,
    complete: next === undefined && (expected === undefined || accounted >= expected),
    next,
  };
}

/** A list that ends before its own count is reached hides something, unless it is known to have changed. */
function ended(end: Verdict): Verdict {
  if (end.complete || end.drift.length > 0) return end;
  throw new AgentAuthError(
    "bad_pagination",
    `the service says there are ${end.expected} items, but its last page came after ${end.yielded + end.duplicates}`,
    { class: "refused" },
  );
}

function tooManyPages(pages: number): AgentAuthError {
  return new AgentAuthError("page_cap", `the listing did not end within ${pages} pages`, {
    class: "refused",
    hint: "allow more with maxPages",
  });
}

function loop(what: string): AgentAuthError {
  return new AgentAuthError("pagination_loop", what, { class: "refused" });
}

/** The error that a listing ends with: where to go on, and `partial` once items were given out. */
function interrupted(thrown: unknown, progress: Progress): unknown {
  if (!(thrown instanceof AgentAuthError)) return thrown;
  const partial = progress.yielded > 0 && thrown.class !== "aborted";
  return new AgentAuthError(
    thrown.code,
    partial ? `the listing ended after ${progress.yielded} items: ${thrown.message}` : thrown.message,
    {
      class: partial ? "partial" : thrown.class,
      retryable: thrown.retryable,
      resume: progress.resume,
      status: thrown.status,
      requestId: thrown.requestId,
      url: thrown.url,
      hint: thrown.hint,
      response: thrown.response,
      cause: thrown,
    },
  );
}
