import { describe, expect, it } from "vitest";
import type { Page } from "../../src/api/page.js";
import { SeenIds } from "../../src/api/seen-ids.js";

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
