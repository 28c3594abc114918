import { type AbortSource, type FollowingController, followSignal } from "../http/deadline.js";
import type { ListOptions, Page } from "./page.js";

/** Reads one page; without an `offset`, the one that the service begins with. */
export type FetchPage<T> = (offset: number | undefined, signal: AbortSource) => Promise<Page<T>>;

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

/** What follows a page. */
export interface Upcoming {
  /** The offset of the next page. */
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
  #controller: FollowingController;
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

  /** Drops every page in flight. */
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

  /** Aborts every request in flight. */
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
      return await this.#fetchPage(offset, this.#controller);
    } finally {
      this.#pace.inFlight--;
    }
  }
}
