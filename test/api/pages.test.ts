import nock from "nock";
import { describe, expect, it } from "vitest";
import { SeenIds } from "../../src/api/drift-tracker.js";
import { OrderCheck, orderText, type Page, validatePagination } from "../../src/api/page.js";
import { type Pace, Prefetcher, type Upcoming } from "../../src/api/pages.js";
import { type ListingSummary, ManagementClient } from "../../src/index.js";
import { useNock } from "../helpers/nock.js";
import { rejection, SampleService } from "../helpers/service.js";

const BASE = "https://agentauth.example";
const ALL = ["dev_0", "dev_1", "dev_2", "dev_3", "dev_4"].map((id) => ({ id, type: "device" }));
const SIZE = 2;

const devices = () =>
  new ManagementClient({ baseUrl: BASE, token: "api-token", random: () => 0 }).devices.list({ pool_id: "pool_1" });

/** The request of one page; the first page is asked for without an offset. */
const page = (offset: number) =>
  nock(BASE)
    .get("/api/v1/device")
    .query({ pool_id: "pool_1", ...(offset > 0 && { "pagination[offset]": offset }) });

const answer = (offset: number) => ({
  status: "success",
  summaries: ALL.slice(offset, offset + SIZE),
  pagination: {
    item_count: ALL.length,
    page_offset: offset,
    page_size: SIZE,
    next_page_offset: offset + SIZE < ALL.length ? offset + SIZE : null,
  },
});

useNock();

describe("reading page after page, on the global fetch", () => {
  it("follows the service's offsets to the end", async () => {
    for (const offset of [0, 1, 2, 3]) page(offset).reply(200, answer(offset));
    expect(await devices().toArray()).toEqual(ALL);
  });
});

const URL_OF = "https://service.example/api/v1/device";

/** A page at the offset 10. */
function pageOf(pagination: object, items: object[] = [{ id: "a" }, { id: "b" }], sorting?: object): Page<object> {
  const response = new Response("{}", { status: 200 });
  const page = { items, pagination, sorting, offset: 10, duplicates: 0, unusable: [], requestId: "req-1", url: URL_OF };
  return { ...page, response } as unknown as Page<object>;
}

/** What a check throws or returns as an error. */
function complaintOf(work: () => unknown): string | undefined {
  try {
    const result = work();
    return result instanceof Error ? `${(result as { code?: string }).code}: ${result.message}` : undefined;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    expect(error).toMatchObject({ class: "refused", status: 200, requestId: "req-1", url: URL_OF });
    const isOrder = code === "sorting_ignored";
    const remedy = isOrder ? { action: "configure", option: "sorting" } : undefined;
    const hint = isOrder ? "the option sorting sets how the order is sent" : undefined;
    const offered = error as { hint?: string; remedy?: object };
    expect([offered.hint, offered.remedy]).toEqual([hint, remedy]);
    return `${code}: ${message}`;
  }
}

describe("the numbers of a page", () => {
  const WHOLE = { item_count: 12, item_start: 11, item_end: 12, page_offset: 10, page_size: 2 };
  const fails = (what: string) => `bad_pagination: ${URL_OF}: the page at offset 10 contradicts itself: ${what}`;

  it.each<[object, object[] | undefined, number | null]>([
    [{ ...WHOLE, next_page_offset: 12 }, undefined, 12],
    [{ ...WHOLE, next_page_offset: 11 }, undefined, 11],
    [WHOLE, undefined, null],
    [{ next_page_offset: null, item_count: null, page_offset: null }, undefined, null],
    [{ item_count: 0, item_start: 5, item_end: 1 }, [], null],
    [{ item_count: 2 }, undefined, null],
    [{ item_start: 7, item_count: 2 }, undefined, null],
    // Of a page that does not begin at a multiple of its size.
    [{ page_size: 3, page_index: 4.33, page_count: 3.5 }, undefined, null],
  ])("%j are taken", (pagination, items, next) => {
    expect(validatePagination(pageOf(pagination, items))).toBe(next);
  });

  it.each<[object, string]>([
    [{ item_count: "12" }, 'item_count is "12", not a whole number'],
    [{ item_start: 1.5 }, 'item_start is "1.5", not a whole number'],
    [{ item_end: -1 }, 'item_end is "-1", not a whole number'],
    [{ page_offset: true }, 'page_offset is "true", not a whole number'],
    [{ page_size: 5, page_index: 2.5 }, 'page_index is "2.5", not a whole number'],
    [{ ...WHOLE, page_offset: 0 }, "page_offset is 0, but offset 10 was requested"],
    [{ ...WHOLE, item_end: 13 }, "item_start 11 and item_end 13 do not fit the 2 items of the page"],
    [{ ...WHOLE, item_count: 11 }, "item_count is 11, but the page holds items up to 12"],
    [{ item_count: 1 }, "item_count is 1, but the page holds items up to 2"],
    [{ next_page_offset: "12" }, 'next_page_offset is "12", not a whole number'],
  ])("%j contradict each other", (pagination, what) => {
    expect(complaintOf(() => validatePagination(pageOf(pagination)))).toBe(fails(what));
  });

  it.each([10, 0])("do not advance to the offset %i", (next) => {
    expect(complaintOf(() => validatePagination(pageOf({ next_page_offset: next })))).toBe(
      `pagination_loop: ${URL_OF}: next_page_offset is ${next} on the page at offset 10: the list does not advance`,
    );
  });
});

describe("the order of a list", () => {
  const check = new Set(["order"] as const);
  const items = (...values: unknown[]) => values.map((title, at) => ({ id: String(at), title, status: title }));
  const TITLE = { field: "title", direction: "asc" } as const;

  it.each<[object | undefined, string]>([
    [undefined, "no order"],
    [{}, "no order"],
    [{ field: null, direction: null }, "no order"],
    [{ field: "title" }, 'the order "title"'],
    [{ direction: "desc" }, 'the order ":desc"'],
    [TITLE, 'the order "title:asc"'],
  ])("%j reads: %s", (order, text) => {
    expect(orderText(order as never)).toBe(text);
  });

  it.each<[object, unknown[], string | undefined]>([
    [TITLE, ["a", "b", "b", "c"], undefined],
    [TITLE, ["b", "a"], '"a" at offset 11 comes after "b"'],
    [TITLE, [1, 3, 2], '"2" at offset 12 comes after "3"'],
    [{ ...TITLE, direction: "desc" }, ["b", "c"], '"c" at offset 11 comes after "b"'],
    [{ ...TITLE, direction: "desc" }, ["c", "b"], undefined],
    [{ ...TITLE, direction: "DESC" }, ["c", "b"], undefined],
    // A service may sort without case, by bytes, or without punctuation.
    [TITLE, ["a", "B"], undefined],
    [TITLE, ["B", "a"], undefined],
    [TITLE, ["_b", "a"], undefined],
    [TITLE, ["b", "-b"], undefined],
    // Other types, and items without a value, say nothing.
    [TITLE, ["b", 1], undefined],
    [TITLE, ["b", undefined, "a"], '"a" at offset 12 comes after "b"'],
    [TITLE, [{ at: 2 }, { at: 1 }], '"1" at offset 11 comes after "2"'],
    [TITLE, ["e", "é", "f"], undefined],
    [TITLE, ["Ａ", "🚀"], undefined],
    [TITLE, [null, { at: 1 }, null, { at: 2 }], undefined],
    [{ field: "id", direction: "asc" }, ["b", "a"], undefined],
    [{ field: "id", direction: "desc" }, ["b", "a"], '"1" at offset 11 comes after "0"'],
    [{ field: "id" }, ["b", "a"], undefined],
    [{ field: "status", direction: "asc" }, ["z", "a", "a"], undefined],
    [{ field: "status", direction: "asc" }, ["z", "a", "z"], '"z" at offset 12 comes after "a"'],
  ])("%j of %j", (sort, values, what) => {
    const order = new OrderCheck({ checks: check, sort, onSortingIgnored: undefined } as never);
    const page = pageOf({}, items(...values), sort);
    const expected = what && `sorting_ignored: ${URL_OF}: ${orderText(sort as never)} was requested, but ${what}`;
    expect(complaintOf(() => order.check(page, false))).toBe(expected);
  });

  it("is compared over pages, but not beyond a change of the list", () => {
    const order = new OrderCheck({ checks: check, sort: TITLE, onSortingIgnored: undefined } as never);
    order.check(pageOf({}, items("b"), TITLE), false);
    order.check(pageOf({}, items("a"), TITLE), true);
    expect(complaintOf(() => order.check(pageOf({}, items("Z"), TITLE), false))).toBe(undefined);
    expect(complaintOf(() => order.check(pageOf({}, items("-"), TITLE), false))).toContain('comes after "Z"');
  });

  it("is another than requested where the answer names another, or none", () => {
    const ignored: unknown[] = [];
    const report = { checks: new Set(), sort: TITLE, onSortingIgnored: (one: unknown) => ignored.push(one) };
    const order = new OrderCheck(report as never);
    const other = { field: "title", direction: "desc" };
    for (const sorting of [TITLE, other, undefined]) order.check(pageOf({}, items("b", "a"), sorting), false);
    expect(ignored).toEqual([{ requested: TITLE, applied: other }]);
    const strict = new OrderCheck({ checks: check, sort: TITLE, onSortingIgnored: undefined } as never);
    expect(complaintOf(() => strict.check(pageOf({}, [], other), false))).toBe(
      `sorting_ignored: ${URL_OF}: the order "title:asc" was requested, and the answer names the order "title:desc"`,
    );
    const descending = new OrderCheck({
      checks: check,
      sort: { direction: "desc" },
      onSortingIgnored: undefined,
    } as never);
    expect(complaintOf(() => descending.check(pageOf({}, items("b", "a"), other), false))).toBe(undefined);
    expect(complaintOf(() => descending.check(pageOf({}, items("b"), other), false))).toContain('"b" at offset 10');
    const none = new OrderCheck({ checks: check, sort: {}, onSortingIgnored: undefined } as never);
    expect(complaintOf(() => none.check(pageOf({}, items("b", "a"), TITLE), false))).toBe(undefined);
  });
});

interface Item {
  id: string;
}

const { WINDOW } = SeenIds;
const idAt = (index: number): string => `dev_${String(index).padStart(6, "0")}`;
const range = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => idAt(from + index));

/** The ids of a page that were not seen before. */
function keepNew(seen: SeenIds, ids: readonly string[]): string[] {
  const page = { items: ids.map((id) => ({ id })), offset: 0, duplicates: 0, unusable: [] as number[] } as Page<Item>;
  seen.keepNew(page, Number.POSITIVE_INFINITY, { skip: 0, shared: 0 });
  return page.items.map(({ id }) => id);
}

describe("the ids of the last items", () => {
  const orders = { ascending: (ids: string[]) => ids, descending: (ids: string[]) => ids.reverse() };

  it.each(Object.entries(orders))("are remembered in %s order", (_name, order) => {
    for (const count of [1, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW - 1, 2 * WINDOW, 2 * WINDOW + 1]) {
      const seen = new SeenIds(true);
      const ids = order(range(0, count));
      expect(keepNew(seen, ids)).toEqual(ids);
      expect({ count, reach: seen.reach }).toEqual({ count, reach: Math.min(count, WINDOW) });
      expect({ count, whole: seen.knowsEvery(1) }).toEqual({ count, whole: count < 2 * WINDOW });
      expect(ids.slice(-WINDOW).every((id) => seen.knows({ id }))).toBe(true);
      expect(seen.knows({ id: "other" })).toBe(false);
      expect({ count, first: seen.knows({ id: ids[0] }) }).toEqual({ count, first: count < 2 * WINDOW });
    }
  });

  it("are recognised where ids no longer ascend", () => {
    const seen = new SeenIds(true);
    keepNew(seen, range(10, 20));
    expect(keepNew(seen, [idAt(20), idAt(15), idAt(5), idAt(5), idAt(21), idAt(20)])).toEqual([20, 5, 21].map(idAt));
    expect(seen.reach).toBe(13);
  });

  it("are strings that are not empty: other items are left out by their offset", () => {
    const items = [{ id: "" }, { id: "a" }, { id: 7 }, {}, { id: null }, { id: "b" }] as Item[];
    const page = { items, offset: 40, duplicates: 0, unusable: [] as number[] } as Page<Item>;
    expect(new SeenIds(true).keepNew(page, Number.POSITIVE_INFINITY, { skip: 0, shared: 0 })).toBe(6);
    expect([page.items, page.unusable]).toEqual([
      [{ id: "a" }, { id: "b" }],
      [40, 42, 43, 44],
    ]);
  });
});

const pool_id = "<pool_id>";

async function read(service: SampleService, options: object = {}) {
  let end: ListingSummary | undefined;
  const onEnd = (summary: ListingSummary) => {
    end = summary;
  };
  const items = await service
    .client()
    .devices.list({ pool_id }, { ...options, onEnd })
    .toArray();
  return { ids: items.map(({ id }) => id), end };
}

const refused = (code: string) => Response.json({ status: "error", code, message: "no" }, { status: 400 });

type Alter = SampleService["alter"];
const aligned = (offset: number) => new SampleService(35).page(offset - (offset % 10), 10);
const withoutOffset: Alter = (_, offset) => {
  const page = aligned(offset);
  return { ...page, pagination: { ...page.pagination, page_offset: undefined } };
};
const refusing =
  (code: string): Alter =>
  (page, offset) =>
    offset % 10 === 0 ? page : refused(code);

/** Services that do not return the page that begins one item earlier. */
const SERVICES: [string, string, Alter][] = [
  ["aligns offsets", "aligned", (_, offset) => aligned(offset)],
  ["aligns offsets and does not say so", "aligned", withoutOffset],
  ["refuses an offset inside a page as bad_request", "refused", refusing("bad_request")],
  ["refuses an offset inside a page as invalid_value", "refused", refusing("invalid_value")],
];

describe("a service that", () => {
  it.each(SERVICES)("%s gets the pages as it names them, and the summary says why", async (_, reason, alter) => {
    for (const concurrency of [1, 4]) {
      const service = new SampleService(35);
      service.alter = alter;
      const { ids, end } = await read(service, { concurrency });
      expect(ids).toEqual(service.ids());
      expect(end).toMatchObject({ complete: true, unseenShifts: reason });
      if (concurrency === 1) expect(service.offsets).toEqual([0, 9, 10, 20, 30]);
    }
  });

  it.each(SERVICES)("%s loses nothing by a deletion, which its count shows", async (_, __, alter) => {
    const service = new SampleService(35);
    const stayed = service.ids().slice(3);
    service.alter = (page, offset, nth) => {
      const made = alter(page, offset, nth);
      if (made instanceof Response) return made;
      return { ...service.page(offset - (offset % 10), 10) };
    };
    service.before = (_offset, nth) => {
      if (nth === 4) service.items.splice(0, 3);
    };
    const { ids } = await read(service);
    expect(stayed.filter((id) => !ids.includes(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("fails at both offsets ends the listing with the second failure", async () => {
    const service = new SampleService(35);
    service.alter = (page, offset) => (offset === 0 ? page : refused(offset === 9 ? "bad_request" : "not_permitted"));
    const error = await rejection(read(service));
    expect(error).toMatchObject({ code: "not_permitted", class: "partial", resume: 10 });
  });
});

describe("a page", () => {
  it.each([1, 4])("of one item has no item before it, and the summary says so (%i in flight)", async (concurrency) => {
    const service = new SampleService(5, 1);
    const { ids, end } = await read(service, { concurrency });
    expect([ids, service.offsets, end?.unseenShifts]).toEqual([service.ids(), [0, 1, 2, 3, 4], "page_size"]);
  });

  it("of several begins with the last item of the one before, and the list says nothing of it", async () => {
    const service = new SampleService(30);
    const { ids, end } = await read(service);
    expect([ids, service.offsets]).toEqual([service.ids(), [0, 9, 18, 27]]);
    expect(end).toEqual({
      ...{ yielded: 30, expected: 30, duplicates: 0, drift: [], missing: 0, complete: true },
      ...{ unseenShifts: undefined, next: undefined },
    });
  });

  it.each([1, 4])(
    "that ends at a limit says where the list continues in the count of the reader (%i in flight)",
    async (concurrency) => {
      const service = new SampleService(30);
      const { ids, end } = await read(service, { limit: 19, concurrency });
      expect([ids.length, end?.next, service.offsets]).toEqual([19, 19, [0, 9]]);
      const rest = await read(service, { offset: end?.next, concurrency });
      expect(rest.ids).toEqual(service.ids().slice(19));
    },
  );
});

interface Options {
  concurrency?: number;
  offset?: number;
  signal?: AbortSignal;
  /** Milliseconds that each page takes. */
  ms?: number;
  items?: number;
  inFlight?: number;
}

const pageAt = (offset: number, count: number, items: number) =>
  ({ offset, items: Array.from({ length: items }, () => ({})), pagination: { item_count: count } }) as Page<object>;

/** What follows the page at an offset in a list of 100,000. */
const following = (offset: number, next: number): Upcoming => ({ next, step: next - offset, end: 100_000 });

/** A prefetcher over a list of 100 items, and the offsets that it has requested. */
function setUp({ ms = 0, items = 10, inFlight = 0, ...options }: Options = {}, count = 100) {
  const requested: (number | undefined)[] = [];
  const signals: AbortSignal[] = [];
  let now = 0;
  const pace: Pace = { now: () => now, inFlight };
  const fetchPage = async (offset: number | undefined, signal: AbortSignal) => {
    requested.push(offset);
    signals.push(signal);
    now += ms;
    await Promise.resolve();
    if (offset === 66) throw new Error("no page here");
    return pageAt(offset ?? 0, count, items);
  };
  const prefetcher = new Prefetcher<object>(fetchPage, options, pace);
  return { prefetcher, requested, signals, pace };
}

describe("pages that are requested ahead", () => {
  it.each<[string, Options, number, number, number[]]>([
    ["one at a time", { concurrency: 1 }, 10, 100, []],
    ["by default", {}, 10, 100, []],
    ["as many as were asked for", { concurrency: 4 }, 10, 100, [10, 20, 30, 40]],
    ["from one item earlier", { concurrency: 4 }, 9, 99, [9, 18, 27, 36]],
    ["up to the end", { concurrency: 4 }, 10, 30, [10, 20]],
    ["the next one also behind the end", { concurrency: 4 }, 10, 5, [10]],
  ])("are those: %s", (_what, options, next, end, expected) => {
    const { prefetcher, requested } = setUp(options);
    prefetcher.schedule({ next, step: next, end });
    expect(requested).toEqual(expected);
  });

  it("are each requested once, and follow each other", async () => {
    const { prefetcher, requested } = setUp({ concurrency: 2 });
    prefetcher.schedule(following(0, 10));
    expect((await prefetcher.next(10)).offset).toBe(10);
    prefetcher.schedule(following(10, 20));
    expect((await prefetcher.next(20)).offset).toBe(20);
    expect(requested).toEqual([10, 20, 30]);
  });

  it("are dropped at a wrong guess, and no more are requested", async () => {
    const { prefetcher, requested, signals } = setUp({ concurrency: 3 });
    prefetcher.schedule(following(0, 10));
    await prefetcher.next(10);
    prefetcher.schedule(following(10, 15));
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    await prefetcher.next(15);
    prefetcher.schedule(following(15, 25));
    expect(requested).toEqual([10, 20, 30, 15]);
    expect(signals[3]?.aborted).toBe(false);
    prefetcher.stop();
    expect(signals[3]?.aborted).toBe(true);
  });

  it("may fail: that counts where the page is the next one", async () => {
    const { prefetcher } = setUp({ concurrency: 2 });
    prefetcher.schedule(following(60, 66));
    await new Promise(setImmediate);
    await expect(prefetcher.next(66)).rejects.toThrow("no page here");
  });

  it("are aborted by the signal of the listing", async () => {
    const controller = new AbortController();
    const { prefetcher, signals } = setUp({ concurrency: 2, signal: controller.signal });
    prefetcher.schedule(following(0, 10));
    controller.abort();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    await prefetcher.next(10);
  });

  it.each<[string, Options, number[], number]>([
    ["after two slow pages, the first not counted", { ms: 20 }, [0, 10, 20], 4],
    ["not after one slow page", { ms: 20 }, [0, 10], 0],
    ["not where they are fast", { ms: 19 }, [0, 10, 20, 30], 0],
    ["not where large ones take longer", { ms: 39, items: 1000 }, [0, 1000, 2000], 0],
    ["where large ones are slow", { ms: 40, items: 1000 }, [0, 1000, 2000], 4],
    ["as many as other listings leave", { ms: 20, inFlight: 3 }, [0, 10, 20], 1],
    ["none where other listings have four", { ms: 20, inFlight: 4 }, [0, 10, 20], 0],
  ])("are several %s", async (_what, options, offsets, ahead) => {
    const { prefetcher, requested } = setUp(options, 100_000);
    for (const offset of offsets) await prefetcher.next(offset);
    const last = offsets.at(-1) ?? 0;
    prefetcher.schedule(following(last, last + (options.items ?? 10)));
    expect(requested.length - offsets.length).toBe(ahead);
  });

  it("leave the count of those in flight as it was", async () => {
    const { prefetcher, pace } = setUp({ concurrency: 3 });
    prefetcher.schedule(following(0, 10));
    expect(pace.inFlight).toBe(3);
    for (const offset of [10, 20, 30]) await prefetcher.next(offset);
    expect(pace.inFlight).toBe(0);
  });

  it("begin where the service does, unless an offset is asked for", async () => {
    const [first, named] = [setUp(), setUp({ offset: 0 })];
    await Promise.all([first.prefetcher.next(0), named.prefetcher.next(0)]);
    expect([first.requested, named.requested]).toEqual([[undefined], [0]]);
  });
});
