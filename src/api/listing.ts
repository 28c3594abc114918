import type { ListOptions, Page, ReadOptions } from "./page.js";
import { type FetchPage, type Pace, readPages } from "./pages.js";
import type { OpenSorting } from "./types.js";

/** The first page of a listing, with its HTTP response. */
export interface ListingResponse<T> {
  /** The page. */
  data: Page<T>;
  /** The response; its body has been read. */
  response: Response;
  /** The request id that the service sent. */
  requestId: string | undefined;
}

/**
 * A list that is read lazily: iterating sends the first request, and each new iteration starts again.
 *
 * Leaving a `for await` loop early aborts every request in flight. A listing ends complete or throws an
 * `AgentAuthError` whose `resume` is the offset to continue at. Items without an id are left out: after all others, the
 * listing throws `unusable_items`.
 *
 * @example
 * for await (const device of service.devices.list({ pool_id })) console.log(device.title);
 */
export class Listing<T extends object> implements AsyncIterable<T> {
  readonly #fetchPage: FetchPage<T>;
  readonly #options: ReadOptions;
  readonly #pace: Pace;

  /** @param pace shared by the listings of one client */
  constructor(fetchPage: FetchPage<T>, options: ReadOptions, pace: Pace) {
    wholeNumber(options.pageSize, 1, "pageSize");
    wholeNumber(options.limit, 1, "limit");
    wholeNumber(options.concurrency, 1, "concurrency");
    wholeNumber(options.offset, 0, "offset");
    wholeNumber(options.maxPages, 1, "maxPages");
    this.#fetchPage = fetchPage;
    this.#options = options;
    this.#pace = pace;
  }

  /** Every item, in the service's order. */
  async *[Symbol.asyncIterator](): AsyncIterableIterator<T, void, undefined> {
    for await (const page of this.pages()) {
      const { items } = page;
      // A page that was read has none: see forgetBody.
      page.items = [];
      for (const item of items) yield item;
    }
  }

  /** Every page, with its numbers. */
  pages(): AsyncGenerator<Page<T>, void, undefined> {
    return readPages(this.#fetchPage, this.#options, this.#pace);
  }

  /**
   * The items as an array, in memory all at once.
   *
   * @param options.limit the most items to take; overrides the listing's own
   */
  async toArray(options: Pick<ListOptions, "limit"> = {}): Promise<T[]> {
    const all: T[] = [];
    for await (const page of this.#with(options).pages()) for (const item of page.items) all.push(item);
    return all;
  }

  /** The first item, or undefined when the list is empty. */
  async first(): Promise<T | undefined> {
    for await (const item of this.#with({ limit: 1 })) return item;
    return undefined;
  }

  /** The first page. An empty list has one too, without items. */
  async firstPage(): Promise<Page<T>> {
    const pages = this.#with({ concurrency: 1 }).pages();
    const { value } = await pages.next();
    await pages.return();
    if (value === undefined) throw new TypeError("a listing has at least one page");
    return value;
  }

  /** The first page with its HTTP response, whose body has been read: for its status and its headers. */
  async withResponse(): Promise<ListingResponse<T>> {
    const data = await this.firstPage();
    return { data, response: data.response, requestId: data.requestId };
  }

  /** What `console.log` of Node prints: a listing holds no items. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Listing of ${this.#options.subject} { read it with for await, pages(), firstPage(), first() or toArray() }`;
  }

  #with(options: Pick<ListOptions, "limit" | "concurrency">): Listing<T> {
    return new Listing(this.#fetchPage, { ...this.#options, ...options }, this.#pace);
  }
}

function wholeNumber(value: number | undefined, minimum: number, name: string): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || value < minimum)
    throw new TypeError(`${name} must be a whole number of at least ${minimum}, not ${String(value)}`);
}

/** The operations on one resource. */
export interface ResourceOperations<Scope extends object, Sorting extends OpenSorting, Item extends object> {
  /**
   * A list that is read when it is iterated.
   *
   * @throws `AgentAuthError` `usage` where the id of the scope is missing
   */
  list(params: Scope, options?: ListOptions<Sorting>): Listing<Item>;
  /**
   * One item, found by listing its scope, because the service has no operation for it.
   *
   * @throws `AgentAuthError` `not_found` when the list ends without it, `usage` for a missing id
   */
  get(params: Scope & { id: string }, options?: Omit<ListOptions, "sort">): Promise<Item>;
}
