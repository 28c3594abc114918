import { AgentAuthError, isAgentAuthError, type UnusableItems } from "../errors.js";
import { followSignal, type SignalFollower } from "../http/deadline.js";
import { type DriftSummary, DriftTracker, listChanged, readItemId, SeenIds } from "./drift-tracker.js";
import type { ListingSummary, ListOptions, Page, ReadOptions, UnseenShifts } from "./page.js";
import { hasSteadyOrder, OrderCheck, refusedPage, validatePagination } from "./page.js";

/** Reads one page; without an `offset`, the one that the service begins with. */
export type FetchPage<T> = (offset: number | undefined, signal: AbortSignal) => Promise<Page<T>>;

/** What the listings of one client share, to choose how many pages are in flight where the program does not say it. */
export interface Pace {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  inFlight: number;
}

/** Milliseconds: where pages come faster, requests that wait for each other cost less CPU and memory. */
const SLOW_PAGE_MS = 20;
/** Items that a page may have for that time: more of them take longer to transfer and to parse. */
const SLOW_PAGE_ITEMS = 500;
/** This many in a row: on a busy machine, one page is late now and then. */
const SLOW_PAGES = 2;
const DEFAULT_CONCURRENCY = 4;

export interface Upcoming {
  readonly next: number;
  /** From each offset to that of the page after it, as far as all pages have the same size. */
  readonly step: number;
  /** The offset behind the last item that is of use. */
  readonly end: number;
}

/**
 * Requests pages ahead of the reader, at most `concurrency` at once. Without that number it requests one page at a time
 * until two in a row are slow, and then as many as four are in flight among all listings of the client.
 *
 * The service names the offset of the next page only. The offsets behind it are guesses: the next page's offset plus
 * multiples of the step. A guess counts once the page before it names the same offset as its next. At the first wrong
 * guess all pages in flight are dropped, and the rest is read page by page.
 */
export class Prefetcher<T> {
  readonly #fetchPage: FetchPage<T>;
  readonly #pages = new Map<number, Promise<Page<T>>>();
  readonly #options: Pick<ListOptions, "offset" | "signal">;
  readonly #pace: Pace;
  #controller: SignalFollower;
  #width: number;
  #adapts: boolean;
  /** The first page also opens the connection, so that its time says nothing about the others. */
  #isFirst = true;
  /** Slow pages in a row. */
  #slow = 0;

  constructor(fetchPage: FetchPage<T>, options: Pick<ListOptions, "concurrency" | "offset" | "signal">, pace: Pace) {
    this.#fetchPage = fetchPage;
    this.#options = options;
    this.#pace = pace;
    this.#controller = followSignal(options.signal);
    this.#width = options.concurrency ?? 1;
    this.#adapts = options.concurrency === undefined;
  }

  /** The page at an offset: the one in flight, or a new request. */
  async next(offset: number): Promise<Page<T>> {
    const pending = this.#pages.get(offset);
    if (pending) {
      this.#pages.delete(offset);
      return pending;
    }
    const requested = offset === 0 && this.#options.offset === undefined ? undefined : offset;
    const startedAt = this.#pace.now();
    const page = await this.#send(requested);
    if (this.#adapts && !this.#isFirst) this.#adapt(page.items.length, this.#pace.now() - startedAt);
    this.#isFirst = false;
    return page;
  }

  #adapt(items: number, ms: number): void {
    this.#slow = ms >= SLOW_PAGE_MS * Math.max(1, items / SLOW_PAGE_ITEMS) ? this.#slow + 1 : 0;
    if (this.#slow === SLOW_PAGES) this.#width = DEFAULT_CONCURRENCY;
  }

  /** Requests the next page, and those behind it by guess. */
  schedule({ next, step, end }: Upcoming): void {
    if (this.#width <= 1) return;
    if (this.#pages.size > 0 && !this.#pages.has(next)) {
      this.stopPrefetching();
      return;
    }
    for (let offset = next; this.#pages.size < this.#width; offset += step) {
      if (offset !== next && offset >= end) break;
      if (this.#adapts && this.#pace.inFlight >= DEFAULT_CONCURRENCY) break;
      if (!this.#pages.has(offset)) this.#pages.set(offset, this.#request(offset));
    }
  }

  drop(): void {
    this.stop();
    this.#controller = followSignal(this.#options.signal);
  }

  /** Drops every page in flight, and requests one page at a time from here on. */
  stopPrefetching(): void {
    this.#width = 1;
    this.#adapts = false;
    this.drop();
  }

  stop(): void {
    this.#pages.clear();
    this.#controller.abort(undefined);
    this.#controller.release();
  }

  #request(offset: number): Promise<Page<T>> {
    const page = this.#send(offset);
    // The failure of a guess matters only if its page is the next one.
    page.catch(() => undefined);
    return page;
  }

  async #send(offset: number | undefined): Promise<Page<T>> {
    this.#pace.inFlight++;
    try {
      return await this.#fetchPage(offset, this.#controller.signal);
    } finally {
      this.#pace.inFlight--;
    }
  }
}

const MAX_EMPTY_PAGES = 50;
const DEFAULT_MAX_PAGES = 100_000;

interface ListingProgress {
  /** The offset that the listing began at. */
  readonly from: number;
  yielded: number;
  duplicates: number;
  /** How many items have no id. */
  unusable: number;
  /** The offsets of the first of them. */
  readonly positions: number[];
  /** Offset of the first item that was not yielded. */
  resume: number;
}

/** Offsets that an error names: a service without ids would fill the memory. */
const MOST_POSITIONS = 100;

/**
 * Reads pages in order until the service says there are no more.
 *
 * Complete or an error: numbers that contradict each other, an offset that does not advance, a list without end and a
 * list that ends too early are errors, with `resume` set, and of class `partial` once items were yielded. Items without
 * an id are left out, and the listing ends with an error after all others.
 * {@link DriftTracker} keeps the position in a list that changes.
 */
export async function* readPages<T extends object>(
  fetchPage: FetchPage<T>,
  options: ReadOptions,
  pace: Pace,
): AsyncGenerator<Page<T>, void, undefined> {
  const from = options.offset ?? 0;
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const progress: ListingProgress = { from, yielded: 0, duplicates: 0, unusable: 0, positions: [], resume: from };
  const reader = new OverlappingReader(fetchPage, options, pace);
  const seen = new SeenIds(from === 0);
  const tracker = new DriftTracker<T>(options, seen);
  const order = new OrderCheck(options);
  const { maxPages = DEFAULT_MAX_PAGES } = options;
  // To compare them with those of a second reading, where the strict one has to read a list twice.
  const ids = options.checks.has("drift") ? new Set<string | undefined>() : undefined;
  let emptyRun = 0;
  let summary: ListingSummary;
  let url: string;
  try {
    for (let pages = 1; ; pages++) {
      const position = progress.resume;
      const page = await reader.next(position);
      const next = validatePagination(page);
      const decision = tracker.check(page, position, reader.grain);
      if ("rewind" in decision) {
        reader.rewind();
        progress.resume = decision.rewind;
        if (pages === maxPages) throw tooManyPages(page, pages);
        continue;
      }
      order.check(page, tracker.stats.drift.length > 0);
      const raw = page.items.length;
      const used = seen.keepNew(page, limit - progress.yielded, decision);
      progress.yielded += page.items.length;
      progress.duplicates += page.duplicates;
      progress.unusable += page.unusable.length;
      progress.positions.push(...page.unusable.slice(0, MOST_POSITIONS - progress.positions.length));
      if (ids) for (const item of page.items) ids.add(readItemId(item));
      emptyRun = raw === 0 ? emptyRun + 1 : 0;
      if (emptyRun > MAX_EMPTY_PAGES)
        throw refusedPage("pagination_loop", page, `${MAX_EMPTY_PAGES} empty pages came in a row`);
      const left = limit - progress.yielded;
      if (typeof next === "number" && left > 0) reader.schedule(page, { raw, next, left });
      ({ url } = page);
      const isCut = used < raw || typeof next === "number";
      const resume = used < raw || typeof next !== "number" ? page.offset + used : next;
      page.offset += decision.shared;
      yield page;
      progress.resume = resume;
      if (left <= 0 && isCut) {
        summary = buildSummary(progress, tracker.stats, { unseenShifts: reader.unseen, next: resume });
        break;
      }
      if (next === null) {
        const isSteady = hasSteadyOrder(page, options.sort);
        if (left > 0) requireEnd(page, progress, tracker.stats);
        summary = buildSummary(progress, tracker.stats, { unseenShifts: reader.unseen, isSteady });
        if (progress.unusable > 0) break;
        progress.resume = from;
        const isMovable = pages > 1 && !isSteady && !options.isSecond;
        const second = new SecondReading(fetchPage, options, pace);
        if (ids) {
          if (summary.missing > 0) throw listChanged(page, missingText(summary), from);
          if (isMovable) await second.requireSame(ids, page);
        } else if (isMovable && tracker.stats.vanished > 0 && seen.knowsEvery(0)) {
          for await (const more of second.pages()) {
            seen.keepNew(more, limit - progress.yielded, { skip: 0, shared: 0 });
            progress.yielded += more.items.length;
            if (more.items.length > 0) yield more;
            if (progress.yielded >= limit) break;
          }
          summary = second.correct(summary, progress.yielded);
        }
        break;
      }
      if (typeof next !== "number") throw next;
      if (pages === maxPages) throw tooManyPages(page, pages);
    }
  } catch (thrown) {
    throw withResume(thrown, progress);
  } finally {
    reader.stop();
  }
  const { unusable: count, positions } = progress;
  if (count > 0) throw unusableItems(options.subject, url, { count, positions }, summary.next);
  options.onEnd?.(summary);
}

interface Ending extends Pick<ListingSummary, "unseenShifts"> {
  /** Where a listing continues that ended at a limit. */
  next?: number;
  /** Whether no item moves to another place in the order of the list. */
  isSteady?: boolean;
}

function buildSummary(
  { from, yielded, duplicates, unusable }: ListingProgress,
  stats: DriftSummary,
  { next, unseenShifts, isSteady = false }: Ending,
): ListingSummary {
  const { count, drift, everCounted, hasGrown, vanished } = stats;
  const expected = count === undefined ? undefined : Math.max(0, count - from);
  // An added item may be before the read position, and so may one that moved: the list is complete only if every item that
  // was ever counted was yielded.
  const wanted = Math.max(expected ?? 0, hasGrown || !isSteady ? everCounted - from : 0);
  const short = Math.max(0, wanted - yielded - unusable, isSteady ? 0 : vanished);
  const missing = next === undefined ? short : 0;
  const complete = next === undefined && missing === 0;
  return { yielded, expected, duplicates, drift, missing, complete, unseenShifts, next };
}

/**
 * A list that ends before its own count is reached is an error. An item added while the last page is built may be in its
 * count but not among its items; no other change of the list explains such an end.
 */
function requireEnd<T>(page: Page<T>, progress: ListingProgress, stats: DriftSummary): void {
  const { from, yielded, duplicates, unusable } = progress;
  const { count = 0, previousCount = count, reread } = stats;
  const reached = from + yielded + duplicates + unusable - reread;
  if (reached >= Math.min(count, previousCount)) return;
  const what = `the service says there are ${count} items, but its last page came after ${reached}`;
  throw refusedPage("bad_pagination", page, what);
}

/** How many items may be missing, as a sentence. */
export function missingText({ missing }: Pick<ListingSummary, "missing">): string {
  return `${missing} ${missing === 1 ? "item" : "items"} may be missing`;
}

/** Reads a list once more whose items may have moved to another place while it was read. */
class SecondReading<T extends object> {
  readonly #pages: AsyncGenerator<Page<T>, void, undefined>;
  #summary: ListingSummary | undefined;

  constructor(fetchPage: FetchPage<T>, options: ReadOptions, pace: Pace) {
    const onEnd = (summary: ListingSummary) => {
      this.#summary = summary;
    };
    // What changes during it shows in the ids.
    const checks = new Set([...options.checks].filter((check) => check !== "drift"));
    this.#pages = readPages(fetchPage, { ...options, limit: undefined, onEnd, checks, isSecond: true }, pace);
  }

  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    try {
      yield* this.#pages;
    } catch (thrown) {
      throw pageError(thrown);
    }
  }

  /** The summary of both readings. */
  correct(first: ListingSummary, yielded: number): ListingSummary {
    if (!this.#summary) return { ...first, yielded };
    const { expected, drift, missing } = this.#summary;
    return { ...first, yielded, expected, drift: [...first.drift, ...drift], missing, complete: missing === 0 };
  }

  /** @throws `AgentAuthError` `list_changed` where it has other ids than the first one */
  async requireSame(ids: ReadonlySet<string | undefined>, last: Page<T>): Promise<void> {
    let same = 0;
    let others = 0;
    for await (const { items } of this.pages()) for (const item of items) ids.has(readItemId(item)) ? same++ : others++;
    if (same === ids.size && others === 0) return;
    const what = `when it was read again, ${ids.size - same} of its items did not come, and ${others} others did`;
    throw listChanged(last, `the list changed while it was read: ${what}`, 0);
  }
}

/**
 * The error after all items that have an id.
 *
 * @param subject what is listed
 * @param next where a listing continues that ended at a limit
 */
export function unusableItems(subject: string, url: string, unusable: UnusableItems, next: number | undefined) {
  const { count, positions } = unusable;
  const named = `${positions.slice(0, 10).join(", ")}${count > 10 ? ", …" : ""}`;
  const have = count === 1 ? "has no id, at offset" : "have no id, at offsets";
  const message = `${count} of the ${subject} ${have} ${named}; all others were listed`;
  const remedy = next === undefined ? undefined : ({ action: "resume", offset: next } as const);
  return new AgentAuthError("unusable_items", message, { class: "partial", url, resume: next, unusable, remedy });
}

/** Whether an error says that all items of a list came but those without an id. */
export function isUnusableItems(thrown: unknown): thrown is AgentAuthError {
  return isAgentAuthError(thrown, "unusable_items");
}

function tooManyPages({ url }: { url: string }, pages: number): AgentAuthError {
  const message = `${url}: the listing did not end within ${pages} pages`;
  const remedy = { action: "configure", option: "maxPages" } as const;
  return new AgentAuthError("page_cap", message, { class: "refused", url, hint: "allow more with maxPages", remedy });
}

const PAGE_ERRORS = new WeakMap<AgentAuthError, AgentAuthError>();

/** The error of the page that a listing failed at, without what the listing added. */
export function pageError(thrown: unknown): unknown {
  return (thrown instanceof AgentAuthError && PAGE_ERRORS.get(thrown)) || thrown;
}

/** The error that a listing ends with: where to resume, and of class `partial` once items were yielded. */
function withResume(thrown: unknown, progress: ListingProgress): unknown {
  if (!(thrown instanceof AgentAuthError)) return thrown;
  const partial = progress.yielded > 0 && thrown.class !== "aborted";
  const offset = thrown.resume ?? progress.resume;
  const error = new AgentAuthError(
    thrown.code,
    partial ? `the listing ended after ${progress.yielded} items: ${thrown.message}` : thrown.message,
    {
      class: partial ? "partial" : thrown.class,
      retryable: thrown.retryable,
      resume: offset,
      status: thrown.status,
      requestId: thrown.requestId,
      url: thrown.url,
      hint: thrown.hint,
      remedy: thrown.remedy ?? (partial ? { action: "resume", offset } : undefined),
      response: thrown.response,
      // Of a listing that yielded nothing it would be the same error once more.
      cause: partial ? thrown : thrown.cause,
    },
  );
  PAGE_ERRORS.set(error, thrown);
  return error;
}

/** A page that was read, and what is still wanted. */
interface Progress {
  /** The number of items that the service sent in it. */
  readonly raw: number;
  readonly next: number;
  /** The number of items that are still wanted. */
  readonly left: number;
}

/** The codes of a service that refuses an offset. */
const REFUSALS: ReadonlySet<string> = new Set(["bad_request", "invalid_value"]);

/**
 * Requests each page from one item earlier than the service names it, so that it begins with the last item of the page
 * before: nothing else shows that the list moved in between while its count stayed the same. A service that does not
 * return that offset gets the next ones as it names them.
 */
class OverlappingReader<T> {
  /** Why pages were requested as they are named; undefined as long as each began one item earlier. */
  unseen: UnseenShifts | undefined;
  /** The offsets that the service accepts are multiples of it. */
  grain = 1;
  readonly #prefetcher: Prefetcher<T>;
  #isOff = false;
  /** How much earlier the next page is requested. */
  #overlap: 0 | 1 = 0;
  /** The number of offsets of the last page. */
  #step = 1;

  constructor(fetchPage: FetchPage<T>, options: ReadOptions, pace: Pace) {
    this.#prefetcher = new Prefetcher(fetchPage, options, pace);
  }

  /** The page with the item at `position`, from one item earlier where that is possible. */
  async next(position: number): Promise<Page<T>> {
    if (this.#overlap === 0) return this.#prefetcher.next(position);
    try {
      const page = await this.#prefetcher.next(position - 1);
      const { page_offset: offset, next_page_offset: next } = page.pagination;
      // Without `page_offset`, a page that ends where it was to begin is the one before, once more.
      const isAligned = Number.isSafeInteger(offset) ? offset !== position - 1 : next === position;
      if (!isAligned) return page;
      this.#turnOff("aligned");
    } catch (thrown) {
      if (!isAgentAuthError(thrown) || !REFUSALS.has(thrown.code)) throw thrown;
      this.#turnOff("refused");
    }
    return this.#prefetcher.next(position);
  }

  #turnOff(reason: UnseenShifts): void {
    this.unseen = reason;
    this.#isOff = true;
    this.#overlap = 0;
    this.grain = this.#step;
    this.#prefetcher.drop();
  }

  /** Requests pages ahead, and decides how the one after `page` is requested. */
  schedule(page: Page<T>, { raw, next, left }: Progress): void {
    const step = next - page.offset;
    this.#step = step;
    const isDense = raw === step;
    this.#overlap = !this.#isOff && isDense && step > 1 ? 1 : 0;
    if (!this.#isOff && this.#overlap === 0) this.unseen ??= isDense ? "page_size" : "gaps";
    const count = page.pagination.item_count;
    // Without a count, any guess may lie behind the end of the list.
    const end = typeof count === "number" ? Math.min(count, next + left) : next;
    this.#prefetcher.schedule({ next: next - this.#overlap, step: step - this.#overlap, end: end - this.#overlap });
  }

  /** The next page is one that was read before: it is requested by its offset, and no other one ahead. */
  rewind(): void {
    this.#overlap = 0;
    this.#prefetcher.stopPrefetching();
  }

  stop(): void {
    this.#prefetcher.stop();
  }
}
