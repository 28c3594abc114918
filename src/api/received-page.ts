import { type BufferedResponse, shownUrl } from "../http/buffered-response.js";
import type { Envelope } from "./envelope.js";
import type { Page } from "./page.js";
import type { PaginationOutput, Sorting } from "./types.js";

/** A page as it was read; the getters of its class are not enumerable. */
export class ReceivedPage<T> implements Page<T> {
  readonly items: T[];
  readonly pagination: PaginationOutput;
  readonly sorting: Sorting | undefined;
  readonly offset: number;
  duplicates = 0;
  unusable: number[] = [];
  readonly requestId: string | undefined;
  readonly #address: string;
  readonly #response: Response;

  constructor({ summaries, pagination, sorting }: Envelope<T>, reply: BufferedResponse, offset: number) {
    this.items = summaries;
    this.pagination = pagination;
    this.sorting = sorting;
    this.offset = offset;
    this.requestId = reply.requestId;
    this.#address = reply.url;
    this.#response = reply.response;
  }

  get url(): string {
    return shownUrl(this.#address);
  }

  get response(): Response {
    return this.#response;
  }
}
