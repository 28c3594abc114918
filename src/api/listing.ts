import type { ListOptions, Page } from "./page.js";
import { readPages } from "./pages.js";
import type { FetchPage } from "./prefetcher.js";

/**
 * A list that is read when it is asked for: iterating sends the first request, and each new iteration begins anew.
 *
 * Leaving a `for await` loop early ends every request in flight. A listing ends complete or throws an
 * `AgentAuthError` whose `resume` is the offset to go on at.
 *
 * @example
 * for await (const device of service.devices.list({ pool_id })) console.log(device.title);
 */
export class Listing<T extends object> implements AsyncIterable<T> {
  readonly #fetchPage: FetchPage<T>;
  readonly #options: ListOptions;

  constructor(fetchPage: FetchPage<T>, options: ListOptions) {
    wholeNumber(options.pageSize, 1, "pageSize");
    wholeNumber(options.maxItems, 1, "maxItems");
    wholeNumber(options.concurrency, 1, "concurrency");
    wholeNumber(options.from, 0, "from");
    wholeNumber(options.maxPages, 1, "maxPages");
    this.#fetchPage = fetchPage;
    this.#options = options;
  }

  /** Every item, in the service's order. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T, void, undefined> {
    return itemsOf(this.pages());
  }

  /** Every page, with its numbers. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    const { onEnd } = this.#options;
    const verdict = yield* readPages(this.#fetchPage, this.#options);
    onEnd?.(verdict);
  }

  /**
   * The items as an array, in memory all at once.
   *
   * @param options.maxItems the most items to take; overrides the listing's own
   */
  async toArray(options: Pick<ListOptions, "maxItems"> = {}): Promise<T[]> {
    const all: T[] = [];
    for await (const page of this.#with(options).pages()) for (const item of page.items) all.push(item);
    return all;
  }

  /** The first item, or undefined when the list is empty. */
  async first(): Promise<T | undefined> {
    for await (const item of this.#with({ maxItems: 1 })) return item;
    return undefined;
  }

  #with(options: Pick<ListOptions, "maxItems">): Listing<T> {
    return new Listing(this.#fetchPage, { ...this.#options, ...options });
  }
}

/** Gives out the items of pages: by hand, since a generator inside a generator costs several promises an item. */
function itemsOf<T extends object>(
  pages: AsyncGenerator<Page<T>, void, undefined>,
): AsyncIterableIterator<T, void, undefined> {
  let items: readonly T[] = [];
  let at = 0;
  let refilling: Promise<unknown> | undefined;
  const refill = async (): Promise<IteratorResult<T, void>> => {
    for (;;) {
      const page = await pages.next();
      if (page.done) return page;
      ({ items } = page.value);
      at = 0;
      const value = items[at++];
      if (value !== undefined) return { done: false, value };
    }
  };
  const next = (): Promise<IteratorResult<T, void>> => {
    // Whoever asks again before the answer waits in line, as with a generator.
    if (refilling !== undefined) return refilling.then(next, next);
    const value = items[at];
    if (value !== undefined) {
      at++;
      return Promise.resolve({ done: false, value });
    }
    const filled = refill();
    const settled = () => {
      refilling = undefined;
    };
    refilling = filled.then(settled, settled);
    return filled;
  };
  return {
    next,
    async return() {
      items = [];
      await pages.return();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function wholeNumber(value: number | undefined, least: number, name: string): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || value < least) {
    throw new TypeError(`${name} must be a whole number of at least ${least}, not ${String(value)}`);
  }
}
