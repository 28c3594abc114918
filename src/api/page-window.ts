import { type FollowingController, follow } from "../http/deadline.js";
import type { ListOptions, Page } from "./page.js";

/** Reads one page; `offset` is undefined where the service is to begin by itself. */
export type FetchPage<T> = (offset: number | undefined, signal: AbortSignal) => Promise<Page<T>>;

/**
 * The pages in flight, at most `concurrency` of them.
 *
 * Only the first page after the one in hand is at an offset that the service gave; those behind it are guesses, and a
 * guess counts only when the page before it names the same offset as its next. At the first guess that proves wrong all
 * are dropped, and reading goes on page by page.
 */
export class PageWindow<T> {
  readonly #fetchPage: FetchPage<T>;
  readonly #pages = new Map<number, Promise<Page<T>>>();
  readonly #outer: AbortSignal | undefined;
  readonly #start: number | undefined;
  #controller: FollowingController;
  #width: number;

  constructor(fetchPage: FetchPage<T>, options: Pick<ListOptions, "concurrency" | "from" | "signal">) {
    this.#fetchPage = fetchPage;
    this.#outer = options.signal;
    this.#controller = follow(options.signal);
    this.#width = options.concurrency ?? 1;
    this.#start = options.from;
  }

  /** The page at an offset: the one on its way, or a new request. */
  async take(offset: number): Promise<Page<T>> {
    const pending = this.#pages.get(offset);
    if (pending) {
      this.#pages.delete(offset);
      return pending;
    }
    const asked = offset === 0 && this.#start === undefined ? undefined : offset;
    return this.#fetchPage(asked, this.#controller.signal);
  }

  /** Sends for the pages after `page`: the next, which is certain, and guesses behind it, for at most `left` items. */
  expect(page: Page<T>, next: number, left: number): void {
    if (this.#width <= 1) return;
    if (this.#pages.size > 0 && !this.#pages.has(next)) {
      this.readSerially();
      return;
    }
    const step = next - page.offset;
    const count = page.pagination.item_count;
    // Without a count there is no telling which guess would lie behind the end of the list.
    const end = typeof count === "number" ? Math.min(count, next + left) : next + 1;
    for (let offset = next; this.#pages.size < this.#width; offset += step) {
      if (offset !== next && offset >= end) break;
      if (!this.#pages.has(offset)) this.#pages.set(offset, this.#send(offset));
    }
  }

  /** Drops every page on its way and asks for one at a time from here on. */
  readSerially(): void {
    this.#width = 1;
    this.stop();
    this.#controller = follow(this.#outer);
  }

  /** Ends everything in flight. */
  stop(): void {
    this.#pages.clear();
    this.#controller.abort(undefined);
    this.#controller.release();
  }

  #send(offset: number): Promise<Page<T>> {
    const page = this.#fetchPage(offset, this.#controller.signal);
    // A guess that fails matters only if its turn comes.
    page.catch(() => undefined);
    return page;
  }
}
