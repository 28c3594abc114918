import { ManagementClient, type ManagementClientOptions } from "../../src/index.js";
import { FakeClock } from "./clock.js";
import { startServer } from "./server.js";

/** The response of a sample service for a page; `undefined` members are left out of the JSON. */
export interface MadePage {
  items: unknown;
  pagination?: Record<string, unknown> | null | undefined;
  status?: unknown;
}

/** A device list held in memory that answers as the service does. */
export class SampleService {
  items: { id: string }[];
  pageSize: number;
  /** The order that each answer names. */
  sorting: object | undefined = { field: "id", direction: "asc" };
  /** The requested offsets, in order. */
  readonly offsets: number[] = [];
  /** Sees every request before it is answered. */
  before: (offset: number, nth: number) => void | Promise<void> = () => {};
  /** Changes an answer. */
  alter: (page: MadePage, offset: number, nth: number) => MadePage | Response = (page) => page;

  constructor(count: number, pageSize = 10) {
    this.items = Array.from({ length: count }, (_, index) => ({ id: `dev_${index}` }));
    this.pageSize = pageSize;
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const query = new URL((input as Request).url).searchParams;
    const offset = Number(query.get("pagination[offset]") ?? 0);
    const size = Number(query.get("pagination[page_size]") ?? this.pageSize);
    const nth = this.offsets.push(offset);
    await this.before(offset, nth);
    init?.signal?.throwIfAborted();
    const made = this.alter(this.page(offset, size), offset, nth);
    if (made instanceof Response) return made;
    const { items: summaries, pagination, status = "success" } = made;
    return Response.json({ status, summaries, pagination, sorting: this.sorting });
  };

  page(offset: number, size: number): MadePage {
    const items = this.items.slice(offset, offset + size);
    const count = this.items.length;
    return {
      items,
      pagination: {
        item_count: count,
        item_start: items.length === 0 ? 0 : offset + 1,
        item_end: offset + items.length,
        page_count: Math.ceil(count / size),
        page_index: Math.floor(offset / size) + 1,
        page_offset: offset,
        page_size: size,
        next_page_offset: offset + size < count ? offset + size : null,
        previous_page_offset: offset === 0 ? null : Math.max(0, offset - size),
      },
    };
  }

  client(options: Partial<ManagementClientOptions> = {}): ManagementClient {
    return new ManagementClient({
      baseUrl: "https://agentauth.example",
      fetch: this.fetch,
      maxRetries: 0,
      // Its time stands still, so that no page is slow.
      clock: new FakeClock(),
      ...options,
    });
  }

  /** Listens on loopback; gives the environment of a program that uses it. */
  async listen(): Promise<Record<string, string>> {
    const { origin } = await startServer(async (response, { url }) => {
      const answer = await this.fetch(new Request(new URL(url, "http://localhost")));
      response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
    });
    return { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
  }

  ids(): string[] {
    return this.items.map((item) => item.id);
  }
}

/** The error that a promise rejects with; fails when it does not reject. */
export async function rejection(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("expected a rejection");
}
