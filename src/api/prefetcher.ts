import { type FollowingController, follow } from "../http/deadline.js";
import type { ListOptions, Page } from "./page.js";

/** Reads one page; without an `offset`, the one that the service begins with. */
export type FetchPage<T> = (offset: number | undefined, signal: AbortSignal) => Promise<Page<T>>;

/**
 * Requests pages ahead of the reader, at most `concurrency` at once.
 *
 * The service names the offset of the next page only. The offsets behind it are guesses: the next page's offset plus
 * multiples of the step. A guess counts once the page before it names the same offset as its next. At the first wrong
 * guess all pages in flight are dropped, and the rest is read page by page.
 */
export class Prefetcher<T> {
  readonly #fetchPage: FetchPage<T>;
  readonly #pages = new Map<number, Promise<Page<T>>>();
  readonly #options: Pick<ListOptions, "from" | "signal">;
  #controller: FollowingController;
  #width: number;

  constructor(fetchPage: FetchPage<T>, options: Pick<ListOptions, "concurrency" | "from" | "signal">) {
    this.#fetchPage = fetchPage;
    this.#options = options;
    this.#controller = follow(options.signal);
    this.#width = options.concurrency ?? 1;
  }

  /** The page at an offset: the one in flight, or a new request. */
  async next(offset: number): Promise<Page<T>> {
    const pending = this.#pages.get(offset);
    if (pending) {
      this.#pages.delete(offset);
      return pending;
    }
    const requested = offset === 0 && this.#options.from === undefined ? undefined : offset;
    return this.#fetchPage(requested, this.#controller.signal);
  }

  /** Requests the pages after `page`: the next one, and guesses behind it for at most `left` items. */
  schedule(page: Page<T>, next: number, left: number): void {
    if (this.#width <= 1) return;
    if (this.#pages.size > 0 && !this.#pages.has(next)) {
      this.stopPrefetching();
      return;
    }
    const step = next - page.offset;
    const count = page.pagination.item_count;
    // Without a count, any guess may lie behind the end of the list.
    const end = typeof count === "number" ? Math.min(count, next + left) : next + 1;
    for (let offset = next; this.#pages.size < this.#width; offset += step) {
      if (offset !== next && offset >= end) break;
      if (!this.#pages.has(offset)) this.#pages.set(offset, this.#request(offset));
    }
  }

  /** Drops every page in flight, and requests one page at a time from here on. */
  stopPrefetching(): void {
    this.#width = 1;
    this.stop();
    this.#controller = follow(this.#options.signal);
  }

  /** Aborts every request in flight. */
  stop(): void {
    this.#pages.clear();
    this.#controller.abort(undefined);
    this.#controller.release();
  }

  #request(offset: number): Promise<Page<T>> {
    const page = this.#fetchPage(offset, this.#controller.signal);
    // The failure of a guess matters only if its page is the next one.
    page.catch(() => undefined);
    return page;
  }
}
