import { describe, expect, it } from "vitest";
import type { Page } from "../../src/api/page.js";
import { OrderCheck, orderText, validatePagination } from "../../src/api/page-checks.js";

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
