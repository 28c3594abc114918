import { describe, expect, it } from "vitest";
import { DriftTracker } from "../../src/api/drift-tracker.js";
import type { Page } from "../../src/api/page.js";
import { SeenIds } from "../../src/api/seen-ids.js";
import type { PaginationOutput } from "../../src/api/types.js";
import type { AgentAuthError } from "../../src/errors.js";
import { SampleService } from "../helpers/service.js";

const PAGE_SIZE = 2;

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
function readPage(tracker: DriftTracker<Item>, seen: SeenIds, page: Page<Item>): { decision: string; next: unknown } {
  try {
    const decision = tracker.check(page);
    if ("rewind" in decision) return { decision: `rewind ${decision.rewind}`, next: decision.rewind };
    seen.keepNew(page, Number.POSITIVE_INFINITY, decision.skip);
    return { decision: `skip ${decision.skip}`, next: page.pagination?.next_page_offset };
  } catch (error) {
    page.items.length = 0;
    return { decision: `resume ${(error as AgentAuthError).resume}`, next: undefined };
  }
}

// The list at the moment of each request, the offset of the request, the page, the decision, and the items it yields. The
// offset of the first row is where the listing begins; only from 0 on are all ids known.
const HISTORIES = [
  [
    "a deletion behind the reader",
    "abcdef       0  a b  skip 0    a b",
    "abcdef       2  c d  skip 0    c d",
    "acdef        4  f    rewind 3",
    "acdef        3  e f  rewind 2",
    "acdef        2  d e  skip 0    e",
    "acdef        4  f    skip 0    f",
  ],
  [
    "an insertion before the reader",
    "abcdef       0  a b  skip 0    a b",
    "xabcdef      2  b c  skip 0    c",
    "xabcdef      4  d e  skip 0    d e",
    "xabcdef      6  f    skip 0    f",
  ],
  [
    "every id: a deletion right at the beginning",
    "abcdef       0  a b  skip 0    a b",
    "bcdef        2  d e  rewind 1",
    "bcdef        1  c d  rewind 0",
    "bcdef        0  b c  skip 0    c",
    "bcdef        2  d e  skip 0    d e",
    "bcdef        4  f    skip 0    f",
  ],
  [
    "every id: deletions right at the beginning, while it is read again",
    "abcdef       0  a b  skip 0    a b",
    "bcdef        2  d e  rewind 1",
    "bcdef        1  c d  rewind 0",
    "cdef         0  c d  skip 0    c d",
    "cdef         2  e f  skip 0    e f",
  ],
  [
    "every id: a deletion of what was not read yet",
    "abcdef       0  a b  skip 0    a b",
    "abcde        2  c d  rewind 1",
    "abcde        1  b c  skip 0    c",
    "abcde        3  d e  skip 0    d e",
  ],
  [
    "every id: all that was read is deleted",
    "abcdef       0  a b  skip 0    a b",
    "cdef         2  e f  rewind 0",
    "cdef         0  c d  skip 0    c d",
    "cdef         2  e f  skip 0    e f",
  ],
  [
    "every id: more is deleted than the count says, because something was added at the end",
    "abcdefg      0  a b  skip 0    a b",
    "abcdefg      2  c d  skip 0    c d",
    "cdefgh       4  g h  rewind 3",
    "cdefgh       3  f g  rewind 2",
    "cdefgh       2  e f  rewind 0",
    "cdefgh       0  c d  skip 0",
    "cdefgh       2  e f  skip 0    e f",
    "cdefgh       4  g h  skip 0    g h",
  ],
  [
    "recent ids: a deletion before the place where the listing began",
    "abcdefgh     2  c d  skip 0    c d",
    "bcdefgh      4  f g  rewind 2",
    "bcdefgh      2  d e  skip 1    e",
    "bcdefgh      4  f g  skip 0    f g",
    "bcdefgh      6  h    skip 0    h",
  ],
  [
    "recent ids: items of before that place are not yielded",
    "abcdefghi    4  e f  skip 0    e f",
    "abcdefhi     6  h i  rewind 4",
    "abcdefhi     4  e f  skip 2",
    "abcdefhi     6  h i  skip 0    h i",
  ],
  [
    "recent ids: reading goes on to them, where all pages before them are of before that place",
    "abcdefghijklmnopq  8  i j  skip 0    i j",
    "abcdefghijkl      10  k l  rewind 4",
    "abcdefghijkl       4  e f  skip 2",
    "abcdefghijkl       6  g h  skip 2",
    "abcdefghijkl       8  i j  skip 2",
    "abcdefghijkl      10  k l  skip 0    k l",
  ],
  [
    "recent ids: all that was read is deleted, and the place is lost",
    "abcdefgh     2  c d  skip 0    c d",
    "efgh         4       rewind 0",
    "efgh         0  e f  skip 2",
    "efgh         2  g h  resume 0",
  ],
  [
    "the last item: more insertions than ids reach",
    "abcdefgh     2  c d  skip 0    c d",
    "xyzabcdefgh  4  b c  rewind 3",
    "xyzabcdefgh  3  a b  skip 2",
    "xyzabcdefgh  5  c d  skip 2",
    "xyzabcdefgh  7  e f  skip 0    e f",
    "xyzabcdefgh  9  g h  skip 0    g h",
  ],
  [
    "the last item: a new one among those that were read is left out, the new one behind them is not",
    "abcdefgh     2  c d  skip 0    c d",
    "abcxyzdefgh  4  y z  rewind 3",
    "abcxyzdefgh  3  x y  skip 2",
    "abcxyzdefgh  5  z d  skip 2",
    "abcxyzdefgh  7  e f  skip 0    e f",
    "abcxyzdefgh  9  g h  skip 0    g h",
  ],
  [
    "the last item: it is deleted among insertions, and the place is lost",
    "abcdefgh     2  c d  skip 0    c d",
    "wxyzabcefgh  4  a b  rewind 3",
    "wxyzabcefgh  3  z a  skip 2",
    "wxyzabcefgh  5  b c  resume 3",
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
    let next: unknown = parsed[0]?.offset;
    for (const row of parsed) {
      expect(row.offset).toBe(next);
      const page = pageOf(row.list, row.offset);
      expect(idsOf(page.items)).toBe(row.page);
      const read = readPage(tracker, seen, page);
      const yielded = read.decision.startsWith("skip") ? idsOf(page.items) : "";
      expect({ row, decision: read.decision, yielded }).toEqual({ row, decision: row.decision, yielded: row.yielded });
      next = read.next;
    }
  });

  it("is given up when it shrinks ten times without getting further", () => {
    const tracker = new DriftTracker<Item>({ checks: new Set() }, new SeenIds(true));
    const letters = "abcdefghijklmnopqrstuvwxyz";
    tracker.check(pageOf(letters, 0));
    for (let deleted = 1; deleted <= 11; deleted++) {
      expect(tracker.check(pageOf(letters.slice(deleted), 2))).toEqual({ rewind: 1 });
    }
    expect(() => tracker.check(pageOf(letters.slice(12), 2))).toThrow("shrinks faster than it can be read");
  });

  it("counts what was read again, and the items that there ever were", () => {
    const tracker = new DriftTracker<Item>({ checks: new Set() }, new SeenIds(true));
    for (const [list, offset] of [
      ["abcd", 0],
      ["xabcd", 2],
      ["abcd", 4],
    ] as const) {
      tracker.check(pageOf(list, offset));
    }
    expect(tracker.stats).toMatchObject({ count: 4, previousCount: 5, everCounted: 5, hasGrown: true, reread: 1 });
    expect(tracker.stats.drift.map(({ from, to, offset }) => [from, to, offset])).toEqual([
      [4, 5, 2],
      [5, 4, 4],
    ]);
  });
});
