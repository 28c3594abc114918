import { describe, expect, it } from "vitest";
import { DriftTracker } from "../../src/api/drift-tracker.js";
import type { Page } from "../../src/api/page.js";
import { SeenIds } from "../../src/api/seen-ids.js";
import type { PaginationOutput } from "../../src/api/types.js";
import type { AgentAuthError } from "../../src/errors.js";
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
