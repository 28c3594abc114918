import { describe, expect, it } from "vitest";
import { DriftTracker, SeenIds } from "../../src/api/drift-tracker.js";
import type { Page } from "../../src/api/page.js";
import type { PaginationOutput } from "../../src/api/types.js";
import type { AgentAuthError, ListingSummary, ListOptions } from "../../src/index.js";
import { fc } from "../helpers/properties.js";
import { SampleService } from "../helpers/service.js";

const PAGE_SIZE = 3;

interface Item {
  id: string;
}

/** The page of a list in which each letter is the id of an item. */
function pageOf(list: string, offset: number): Page<Item> {
  return {
    items: Array.from(list.slice(offset, offset + PAGE_SIZE), (id) => ({ id })),
    pagination: new SampleService(list.length, PAGE_SIZE).page(offset, PAGE_SIZE)
      .pagination as unknown as PaginationOutput,
    sorting: undefined,
    offset,
    duplicates: 0,
    unusable: [],
    requestId: undefined,
    url: "https://agentauth.example/api/v1/device",
    response: new Response(),
  };
}

const idsOf = (items: readonly Item[]) => items.map(({ id }) => id).join(" ");

/** Checks one page as a listing does. */
function readPage(tracker: DriftTracker<Item>, seen: SeenIds, page: Page<Item>, position: number) {
  try {
    const next = page.pagination.next_page_offset;
    const decision = tracker.check(page, position);
    if ("rewind" in decision) return { decision: `rewind ${decision.rewind}`, next: decision.rewind };
    seen.keepNew(page, Number.POSITIVE_INFINITY, decision);
    return { decision: `skip ${decision.skip}`, next };
  } catch (error) {
    page.items.length = 0;
    return { decision: `resume ${(error as AgentAuthError).resume}`, next: undefined };
  }
}

// The list at the moment of each request, the offset of the request, the page, the decision, and the items it yields. A page
// is requested from where the one before ended, or from one item earlier. The offset of the first row is where the listing
// begins; only from 0 on are all ids known.
const HISTORIES = [
  [
    "nothing",
    "abcdef       0  a b c  skip 0    a b c",
    "abcdef       2  c d e  skip 1    d e",
    "abcdef       4  e f    skip 1    f",
  ],
  [
    "a deletion behind the reader, and one of what was not read yet",
    "abcdefgh     0  a b c  skip 0    a b c",
    "acdefg       2  d e f  rewind 0",
    "acdefg       0  a c d  skip 0    d",
    "acdefg       2  d e f  skip 1    e f",
    "acdefg       4  f g    skip 1    g",
  ],
  [
    "a deletion behind the reader, and an insertion at the end: the count is the same",
    "abcdefg      0  a b c  skip 0    a b c",
    "bcdefgx      2  d e f  rewind 1",
    "bcdefgx      1  c d e  skip 0    d e",
    "bcdefgx      3  e f g  skip 1    f g",
  ],
  [
    "an insertion before the reader",
    "abcdef       0  a b c  skip 0    a b c",
    "xabcdef      2  b c d  skip 0    d",
    "xabcdef      4  d e f  skip 1    e f",
  ],
  ["a move to the front", "abcdefg      0  a b c  skip 0    a b c", "gabcdef      2  b c d  skip 0    d"],
  [
    "every id: the last item that was read moves to the end",
    "abcdef       0  a b c  skip 0    a b c",
    "abdefc       2  d e f  rewind 1",
    "abdefc       1  b d e  skip 0    d e",
  ],
  [
    "every id: a deletion of what was not read yet",
    "abcdef       0  a b c  skip 0    a b c",
    "abcde        2  c d e  skip 1    d e",
  ],
  [
    "every id: all that was read is deleted",
    "abcdefgh     0  a b c  skip 0    a b c",
    "defgh        2  f g h  rewind 0",
    "defgh        0  d e f  skip 0    d e f",
    "defgh        2  f g h  skip 1    g h",
  ],
  [
    "every id: more is deleted while it is read again",
    "abcdefgh     0  a b c  skip 0    a b c",
    "bcdefgh      2  d e f  rewind 1",
    "defgh        1  e f g  rewind 0",
    "defgh        0  d e f  skip 0    d e f",
  ],
  [
    "without the item before: a deletion behind the reader",
    "abcdefgh     0  a b c  skip 0    a b c",
    "bcdefgh      3  e f g  rewind 2",
    "bcdefgh      2  d e f  rewind 1",
    "bcdefgh      1  c d e  skip 0    d e",
  ],
  [
    "recent ids: a deletion before the place where the listing began",
    "abcdefghi    3  d e f  skip 0    d e f",
    "bcdefghi     5  g h i  rewind 4",
    "bcdefghi     4  f g h  skip 0    g h",
  ],
  [
    "recent ids: items of before that place are not yielded",
    "abcdefghij   5  f g h  skip 0    f g h",
    "bcdefgij     7  j      rewind 5",
    "bcdefgij     5  g i j  skip 0    i j",
  ],
  [
    "recent ids: an insertion among those that were read is new",
    "abcdefgh     3  d e f  skip 0    d e f",
    "abcdxefgh    5  e f g  skip 0    g",
  ],
  [
    "recent ids: more insertions than ids reach",
    "abcdefgh     2  c d e  skip 0    c d e",
    "vwxyzabcdefgh  4  z a b  rewind 3",
    "vwxyzabcdefgh  3  y z a  rewind 1",
    "vwxyzabcdefgh  1  w x y  skip 3",
    "vwxyzabcdefgh  4  z a b  skip 3",
    "vwxyzabcdefgh  7  c d e  skip 0",
    "vwxyzabcdefgh  9  e f g  skip 1    f g",
  ],
  [
    "recent ids: all that was read is deleted, and the place is lost",
    "abcdefghijk  2  c d e  skip 0    c d e",
    "fghijk       4  j k    rewind 0",
    "fghijk       0  f g h  skip 3",
    "fghijk       3  i j k  resume 0",
  ],
  [
    "recent ids: that is deleted among insertions, and the place is lost",
    "abcdefgh     2  c d e  skip 0    c d e",
    "vwxyzabfgh   4  z a b  rewind 3",
    "vwxyzabfgh   3  y z a  rewind 1",
    "vwxyzabfgh   1  w x y  skip 3",
    "vwxyzabfgh   4  z a b  resume 1",
  ],
] satisfies [name: string, ...rows: string[]][];

describe("a listing that changes while it is read", () => {
  it.each(HISTORIES)("%s", (_name, ...rows) => {
    const parsed = rows.map((row) => {
      const [, list = "", offset, page, decision = "", yielded] =
        /^(\w+) +(\d+) +([\w ]*?) +((?:skip|rewind|resume) \d+) *(.*)$/.exec(row) ?? [];
      return { list, offset: Number(offset), page, decision, yielded };
    });
    const seen = new SeenIds(parsed[0]?.offset === 0);
    const tracker = new DriftTracker<Item>({ checks: new Set() }, seen);
    let next = parsed[0]?.offset;
    for (const row of parsed) {
      expect([next, (next ?? 0) - 1]).toContain(row.offset);
      const page = pageOf(row.list, row.offset);
      expect(idsOf(page.items)).toBe(row.page);
      const read = readPage(tracker, seen, page, next ?? 0);
      const yielded = read.decision.startsWith("skip") ? idsOf(page.items) : "";
      expect({ row, decision: read.decision, yielded }).toEqual({ row, decision: row.decision, yielded: row.yielded });
      next = read.next ?? undefined;
    }
  });

  it("is given up when it changes ten times without getting further", () => {
    const tracker = new DriftTracker<Item>({ checks: new Set() }, new SeenIds(true));
    const letters = "abcdefghijklmnopqrstuvwxyz";
    tracker.check(pageOf(letters, 0), 0);
    const change = (list: string) => {
      const decision = tracker.check(pageOf(list, 2), 3);
      tracker.check(pageOf("abc", 0), 0);
      return decision;
    };
    for (let changed = 1; changed <= 11; changed++) expect(change(letters.slice(1))).toEqual({ rewind: 1 });
    expect(() => change(letters.slice(1))).toThrow("changes faster than it can be read");
  });

  it("counts what was read again, what there ever was, and what may have moved ahead of the reader", () => {
    const seen = new SeenIds(true);
    const tracker = new DriftTracker<Item>({ checks: new Set() }, seen);
    for (const [list, offset, position] of [
      ["abcdefg", 0, 0],
      ["xabcdefg", 2, 3],
      ["xabcdeg", 4, 5],
    ] as const) {
      readPage(tracker, seen, pageOf(list, offset), position);
    }
    expect(tracker.stats).toMatchObject({
      count: 7,
      previousCount: 8,
      everCounted: 8,
      hasGrown: true,
      reread: 0,
      vanished: 1,
    });
    expect(tracker.stats.drift.map(({ field, from, to, offset }) => [field, from, to, offset])).toEqual([
      ["item_count", 7, 8, 3],
      ["item_count", 8, 7, 5],
    ]);
  });
});

const pool_id = "<pool_id>";

interface Outcome {
  ids: string[];
  error: AgentAuthError | undefined;
  end: ListingSummary | undefined;
  /** Ids that were in the list all the time. */
  stayed: string[];
}

/** Reads to the end or to the error. */
async function read(service: SampleService, options: ListOptions = {}): Promise<Outcome> {
  const before = new Set(service.ids());
  const outcome: Outcome = { ids: [], error: undefined, end: undefined, stayed: [] };
  const onEnd = (verdict: ListingSummary) => {
    outcome.end = verdict;
  };
  try {
    for await (const device of service.client().devices.list({ pool_id }, { ...options, onEnd })) {
      outcome.ids.push(device.id ?? "");
    }
  } catch (thrown) {
    outcome.error = thrown as AgentAuthError;
  }
  outcome.stayed = service.ids().filter((id) => before.has(id));
  return outcome;
}

/** How many came twice, and how many of those that were there all the time did not come. */
function faultsOf({ ids, stayed }: Outcome, from = 0): { repeated: number; lost: number } {
  const given = new Set(ids);
  return { repeated: ids.length - given.size, lost: stayed.filter((id, at) => at >= from && !given.has(id)).length };
}

let made = 0;
const fresh = (count: number) => Array.from({ length: count }, () => ({ id: `new_${made++}` }));

function at(nth: number, change: (items: { id: string }[]) => void) {
  return (service: SampleService) => {
    service.before = (_, request) => {
      if (request === nth) change(service.items);
    };
    return service;
  };
}

describe("a list that ends before its own count", () => {
  it("is not finished because a count changed", async () => {
    const service = new SampleService(5000, 50);
    service.alter = (page, offset) => {
      if (offset > 0) Object.assign(page.pagination ?? {}, { item_count: 5001, next_page_offset: null });
      return page;
    };
    const { ids, error } = await read(service);
    expect(ids).toHaveLength(99);
    expect(error).toMatchObject({ code: "bad_pagination", class: "partial", resume: 99 });
    expect(error?.message).toContain("there are 5001 items, but its last page came after 99");
  });

  it("is not finished because its last page leaves the count out", async () => {
    const service = new SampleService(500, 50);
    service.alter = (page, offset) => {
      if (offset > 0) Object.assign(page.pagination ?? {}, { item_count: null, next_page_offset: null });
      return page;
    };
    expect((await read(service)).error).toMatchObject({ code: "bad_pagination", class: "partial", resume: 99 });
  });

  it("is not finished because items came twice while others were left out", async () => {
    const service = new SampleService(200, 50);
    service.before = (_, nth) => {
      if (nth === 2) service.items.splice(0, 20);
      if (nth === 4) service.items.unshift(...fresh(30));
    };
    service.alter = (page, offset) => {
      if (offset >= 100) Object.assign(page.pagination ?? {}, { next_page_offset: null });
      return page;
    };
    expect((await read(service)).error).toMatchObject({ code: "bad_pagination", class: "partial" });
  });

  it("is finished where the last page counts an item that came while it was made", async () => {
    const service = new SampleService(100, 50);
    service.alter = (page, offset) => {
      if (offset + 50 >= 100) Object.assign(page.pagination ?? {}, { item_count: 101 });
      return page;
    };
    const { ids, error, end } = await read(service);
    expect([ids.length, error]).toEqual([100, undefined]);
    expect(end).toMatchObject({ yielded: 100, expected: 101, complete: false });
  });
});

describe("more changes between two pages than ids are remembered", () => {
  it.each([1, 4])("3,000 deletions before the read position hide nothing (%i in flight)", async (concurrency) => {
    const outcome = await read(at(6, (items) => items.splice(0, 3000))(new SampleService(20_000, 1000)), {
      concurrency,
    });
    expect(outcome.error).toBeUndefined();
    expect(faultsOf(outcome)).toEqual({ repeated: 0, lost: 0 });
    expect(outcome.end).toMatchObject({ expected: 17_000, complete: true });
  });

  it.each<[string, (items: { id: string }[], nth: number) => unknown, Partial<ListingSummary>]>([
    ["deletions behind the read position", (items, nth) => nth === 7 && items.splice(15_000, 3000), {}],
    [
      "insertions",
      (items, nth) => nth === 6 && items.unshift(...fresh(5000)),
      { yielded: 20_000, expected: 25_000, complete: false },
    ],
    [
      "insertions at every page, which add up",
      (items, nth) => nth > 10 && nth < 30 && items.unshift(...fresh(480)),
      { complete: false },
    ],
  ])("%s repeat nothing", async (_what, change, end) => {
    const service = new SampleService(20_000, 1000);
    service.before = (_, nth) => void change(service.items, nth);
    const outcome = await read(service);
    expect(outcome.error).toBeUndefined();
    expect(faultsOf(outcome)).toEqual({ repeated: 0, lost: 0 });
    expect(outcome.end).toMatchObject(end);
  });

  it("an error says where to continue when everything that was known is gone", async () => {
    const service = at(6, (items) => items.splice(500, 4500))(new SampleService(20_000, 1000));
    service.before = ((shrink) => (offset: number, nth: number) => {
      if (nth === 6) service.items.splice(10_000, 1000);
      return shrink(offset, nth);
    })(service.before);
    const outcome = await read(service);
    expect(outcome.error).toMatchObject({ code: "list_changed", class: "partial", retryable: true });
    expect(outcome.error?.message).toContain("changed too much to find the read position again");
    const firstUnread = service.ids().indexOf("dev_5000");
    expect(outcome.error?.resume).toBeLessThanOrEqual(firstUnread);
    expect(outcome.ids).toEqual(Array.from({ length: 4996 }, (_, index) => `dev_${index}`));
  });
});

describe("a seam", () => {
  it.each([1000, 2000, 3000, 4000, 6000])("repeats nothing after exactly %i items", async (position) => {
    const nth = position / 500 + 1;
    const outcome = await read(at(nth, (items) => items.unshift(...fresh(1)))(new SampleService(8000, 500)));
    expect(outcome.end?.duplicates).toBe(1);
    expect(faultsOf(outcome)).toEqual({ repeated: 0, lost: 0 });
  });

  it("hides nothing where more was deleted than the count shows", async () => {
    const service = new SampleService(100);
    service.before = (_, nth) => {
      if (nth !== 5) return;
      service.items.splice(0, 7);
      service.items.push(...fresh(5));
    };
    const outcome = await read(service);
    expect(outcome.error).toBeUndefined();
    expect(faultsOf(outcome)).toEqual({ repeated: 0, lost: 0 });
  });

  it.each([
    ["hides nothing that slipped to", (items: { id: string }[]) => items.splice(0, 50)],
    ["returns nothing from", (items: { id: string }[]) => items.unshift(...fresh(15))],
  ])("%s before the offset where the listing began", async (_what, change) => {
    const outcome = await read(at(2, change)(new SampleService(200)), { offset: 100 });
    expect(outcome.error).toBeUndefined();
    expect(outcome.ids).toEqual(Array.from({ length: 100 }, (_, index) => `dev_${index + 100}`));
  });

  it.each([
    ["falls", (items: object[]) => items.splice(0, 1)],
    ["rises", (items: object[]) => items.unshift({ title: "without an id" })],
  ])("is an error where the count %s and items have no id to be known by", async (_, change) => {
    const service = new SampleService(40);
    service.items = service.items.map(({ id }, index) => (index % 2 === 0 ? { id } : ({ title: id } as never)));
    const { ids, error } = await read(at(3, change)(service));
    expect(ids).toHaveLength(10);
    expect(error).toMatchObject({ code: "list_changed", class: "partial" });
    expect(error?.message).toContain("no id");
    expect(error?.resume).toBeLessThanOrEqual(20);
  });
});

const batches = (most: number) =>
  fc.array(
    fc.record({
      nth: fc.integer({ min: 2, max: 14 }),
      at: fc.nat(),
      count: fc.integer({ min: 1, max: most }),
      inserting: fc.boolean(),
    }),
    { maxLength: 5 },
  );

/** Between two requests something is deleted or something inserted, as the first plan for that moment says. */
function changing(
  service: SampleService,
  plan: readonly { nth: number; at: number; count: number; inserting: boolean }[],
) {
  service.before = (_, nth) => {
    const change = plan.find((entry) => entry.nth === nth);
    if (change === undefined) return;
    const position = change.at % (service.items.length + 1);
    if (change.inserting) service.items.splice(position, 0, ...fresh(change.count));
    else service.items.splice(position, change.count);
  };
  return service;
}

describe("whatever is deleted and inserted while a list is read", () => {
  it("nothing is lost and nothing repeated in a list of any size", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 120 }),
        fc.integer({ min: 1, max: 15 }),
        fc.integer({ min: 1, max: 6 }),
        batches(20),
        async (count, pageSize, concurrency, plan) => {
          const outcome = await read(changing(new SampleService(count, pageSize), plan), { concurrency });
          expect(outcome.error).toBeUndefined();
          expect(faultsOf(outcome)).toEqual({ repeated: 0, lost: 0 });
        },
      ),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 300) },
    );
  });

  it("a long list ends without a loss or repetition, or says where to continue without a loss", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 5000, max: 12_000 }), batches(6000), async (count, plan) => {
        const service = changing(new SampleService(count, 750), plan);
        const outcome = await read(service);
        expect(faultsOf(outcome).repeated).toBe(0);
        if (outcome.error === undefined) {
          expect(faultsOf(outcome).lost).toBe(0);
          return;
        }
        expect(outcome.error).toMatchObject({ code: "list_changed" });
        const given = new Set(outcome.ids);
        const before = new Set(outcome.stayed);
        const skipped = service.ids().slice(0, outcome.error.resume);
        expect(skipped.filter((id) => before.has(id) && !given.has(id))).toEqual([]);
      }),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 40) },
    );
  });
});

type Operation = { kind: "delete" | "create" | "move"; at: number; to: number };

/** Carries operations out on a list. */
function change(items: { id: string }[], operations: readonly Operation[]): void {
  for (const { kind, at: place, to } of operations) {
    if (kind === "create") items.splice(place % (items.length + 1), 0, ...fresh(1));
    else {
      const taken = items.splice(place % Math.max(1, items.length), 1);
      // Half of them to the front, where what was used last is.
      if (kind === "move") items.splice(to % 2 === 0 ? 0 : to % (items.length + 1), 0, ...taken);
    }
  }
}

const operations = fc.array(
  fc.record({ kind: fc.constantFrom("delete", "create", "move"), at: fc.nat(), to: fc.nat() }),
  { minLength: 1, maxLength: 6 },
);
const ORDER = { field: "last_seen", direction: "desc" };

describe("whatever is deleted, created and moved between the same two requests", () => {
  const kindsOf = (plan: readonly Operation[]) => new Set(plan.map(({ kind }) => kind)).size;

  it.each([
    ["an order in which items move", ORDER],
    ["the order of ids", { field: "id", direction: "asc" }],
  ])("nothing is lost without a word, in %s", async (_, sorting) => {
    const isMoving = sorting === ORDER;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 2, max: 9 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 2, max: 9 }),
        operations.filter((plan) => isMoving || plan.every(({ kind }) => kind !== "move")),
        async (count, pageSize, concurrency, nth, plan) => {
          const service = at(nth, (items) => change(items, plan))(new SampleService(count, pageSize));
          service.sorting = sorting;
          const outcome = await read(service, { concurrency });
          const { repeated, lost } = faultsOf(outcome);
          expect(repeated).toBe(0);
          // Deletion, move and creation at once can leave the count and the place of every item that is compared as they were.
          if (kindsOf(plan) < 3 && outcome.error === undefined) expect(lost > 0 && outcome.end?.complete).toBe(false);
          if (!isMoving) expect([outcome.error, lost]).toEqual([undefined, 0]);
        },
      ),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 300) },
    );
  });

  it("only a change that moves the item before the next page no further than it changes the count hides a loss", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 8, max: 40 }),
        fc.integer({ min: 2, max: 6 }),
        operations.filter((plan) => kindsOf(plan) === 3),
        async (count, pageSize, plan) => {
          const service = new SampleService(count, pageSize);
          service.sorting = ORDER;
          const shared = pageSize - 1;
          let isHidden = false;
          at(2, (items) => {
            const id = items[shared]?.id;
            change(items, plan);
            const place = items.findIndex((item) => item.id === id);
            isHidden = place >= 0 && place - shared <= items.length - count;
          })(service);
          const outcome = await read(service, { concurrency: 1 });
          expect(faultsOf(outcome).repeated).toBe(0);
          if (!isHidden) expect(faultsOf(outcome).lost > 0 && outcome.end?.complete).not.toBe(true);
        },
      ),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 300) },
    );
  });
});

describe("a change that leaves item_count as it was", () => {
  const START = "123456789";
  const between = (list: string, sorting: object = { field: "id", direction: "asc" }) => {
    const service = new SampleService(0, 3);
    service.items = [...START].map((id) => ({ id }));
    service.sorting = sorting;
    return at(2, (items) => items.splice(0, 9, ...[...list].map((id) => ({ id }))))(service);
  };

  it.each([1, 4])("a deletion and a creation lose nothing, with %i in flight", async (concurrency) => {
    const { ids, end } = await read(between("23456789X"), { concurrency });
    expect(ids.join("")).toBe("123456789X");
    expect(end).toMatchObject({
      complete: true,
      missing: 0,
      drift: [{ field: "position", from: 2, to: -1, offset: 3 }],
    });
  });

  it.each([1, 4])(
    "an item that moves to the front is missing, or is found in a second reading (%i in flight)",
    async (concurrency) => {
      const named = await read(between("912345678"), { concurrency });
      expect([named.ids.join(""), named.end?.complete, named.end?.missing]).toEqual(["12345678", false, 1]);
      const moving = await read(between("912345678", ORDER), { concurrency });
      expect([moving.ids.join(""), moving.end?.complete, moving.end?.yielded]).toEqual(["123456789", true, 9]);
    },
  );

  it("is an error with the check `drift`, before everything that may have been missed", async () => {
    const { ids, error } = await read(between("23456789X"), { strict: ["drift"] });
    expect(ids.join("")).toBe("123");
    expect(error).toMatchObject({ code: "list_changed", class: "partial", resume: 1 });
  });

  it("and every place that is compared shows in a second reading, with the check `drift` in an order that moves", async () => {
    // One deleted, the last one to the front, one created at the end.
    const hidden = await read(between("92345678X", ORDER), { strict: ["drift"] });
    expect(hidden.ids.join("")).toBe("12345678X");
    expect(hidden.error).toMatchObject({ code: "list_changed", class: "partial", resume: 0 });
    expect(hidden.error?.message).toContain("1 of its items did not come, and 1 others did");
    const service = between(START, ORDER);
    const same = await read(service, { strict: ["drift"] });
    expect([same.error, same.end?.complete, service.offsets]).toEqual([undefined, true, [0, 2, 4, 6, 0, 2, 4, 6]]);
    const byId = between(START);
    expect([(await read(byId, { strict: ["drift"] })).error, byId.offsets]).toEqual([undefined, [0, 2, 4, 6]]);
  });

  it("does not make a device `not_found` that may be missing", async () => {
    const { devices } = between("912345678").client();
    const error = { code: "list_changed", class: "unavailable", retryable: true };
    await expect(devices.get({ pool_id, id: "9" })).rejects.toMatchObject(error);
  });

  it("an item that the service counts twice is one item", async () => {
    const { ids, end } = await read(between("12345678" + "8"));
    expect([ids.length, end?.complete, end?.missing]).toEqual([8, false, 1]);
    const strict = await read(between("12345678" + "8"), { strict: ["drift"] });
    expect(strict.error).toMatchObject({ code: "list_changed" });
  });
});
