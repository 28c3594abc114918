import type { PaginationOutput } from "../data/wire-types.js";

/** A page inside a list. */
export interface PageWindow {
  /** The requested offset. */
  offset: number;
  /** Items per page. */
  size: number;
  /** Items in the whole list. */
  count: number;
  /** The position of the first item of the page. */
  start: number;
  /** The position behind the last item of the page. */
  end: number;
  /** The offset behind the last item of the list: `count`, unless a fault put empty pages into the list. */
  last: number;
}

/**
 * The pagination object of a page, right for every offset.
 *
 * An offset need not be a multiple of the page size: `page_index` is that of the page in which the offset would fall.
 * A page without items (an empty list, an offset beyond the end) has `item_start` and `item_end` 0 and no next page;
 * an empty list has `page_count` 0.
 */
export function paginationOf({ offset, size, count, start, end, last }: PageWindow): PaginationOutput {
  const empty = end <= start;
  return {
    item_count: count,
    item_start: empty ? 0 : start + 1,
    item_end: empty ? 0 : end,
    page_count: Math.ceil(count / size),
    page_index: Math.floor(offset / size) + 1,
    page_offset: offset,
    page_size: size,
    next_page_offset: offset + size < last ? offset + size : null,
    previous_page_offset: offset === 0 ? null : Math.max(0, offset - size),
  };
}
