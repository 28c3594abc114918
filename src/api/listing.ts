import type { FetchPage } from "./page-window.js";
import { type ListOptions, type Page, readPages } from "./pages.js";

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
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
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

function wholeNumber(value: number | undefined, least: number, name: string): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || value < least) {
    throw new TypeError(`${name} must be a whole number of at least ${least}, not ${String(value)}`);
  }
}
