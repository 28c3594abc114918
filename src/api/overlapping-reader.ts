import { isAgentAuthError } from "../errors.js";
import type { Page, ReadOptions, UnseenShifts } from "./page.js";
import { type FetchPage, type Pace, Prefetcher } from "./prefetcher.js";

/** A page that was read, and what is still wanted. */
interface Progress {
  /** The number of items that the service sent in it. */
  readonly raw: number;
  /** The offset that it names as the next one. */
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
export class OverlappingReader<T> {
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

  /** Aborts every request in flight. */
  stop(): void {
    this.#prefetcher.stop();
  }
}
