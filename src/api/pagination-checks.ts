import type { ErrorCode } from "../error-codes.js";
import { AgentAuthError, type AgentAuthErrorOptions } from "../errors.js";
import { quote } from "../redact.js";
import type { Page } from "./page.js";

const COUNTS = [
  "item_count",
  "item_start",
  "item_end",
  "page_count",
  "page_index",
  "page_offset",
  "page_size",
] as const;

/**
 * Validates a page's numbers against each other and the request (`service.md`, PaginationOutput). An absent or null
 * number contradicts nothing.
 *
 * @returns the next offset as the service sent it, null at the end of the list, or the error to throw once the page's
 * items were yielded
 * @throws `AgentAuthError` `bad_pagination` where the items themselves may not be those of the request
 */
export function validatePagination<T>(page: Page<T>): number | null | AgentAuthError {
  const numbers: Record<string, unknown> = { ...page.pagination };
  for (const name of COUNTS) {
    const value = numbers[name];
    if (value != null && !isCount(value))
      throw inconsistent(page, `${name} is ${quote(value, 60)}, not a whole number`);
  }
  const { item_count: count, item_start: start, item_end: end, page_offset: offset } = page.pagination;
  const length = page.items.length;
  if (offset != null && offset !== page.offset) {
    throw inconsistent(page, `page_offset is ${offset}, but offset ${page.offset} was requested`);
  }
  if (length > 0 && start != null && end != null && end - start + 1 !== length) {
    throw inconsistent(page, `item_start ${start} and item_end ${end} do not fit the ${length} items of the page`);
  }
  if (length > 0 && count != null && (end ?? length) > count) {
    throw inconsistent(page, `item_count is ${count}, but the page holds items up to ${end ?? length}`);
  }
  const next = numbers["next_page_offset"] ?? null;
  if (next === null) return null;
  if (!isCount(next)) return inconsistent(page, `next_page_offset is ${quote(next, 60)}, not a whole number`);
  if (next <= page.offset) {
    const what = `next_page_offset is ${next} on the page at offset ${page.offset}: the list does not advance`;
    return refusedPage("pagination_loop", page, what);
  }
  return next;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function inconsistent<T>(page: Page<T>, what: string): AgentAuthError {
  return refusedPage("bad_pagination", page, `the page at offset ${page.offset} contradicts itself: ${what}`);
}

/** An error of class `refused` about a page, with its address. */
export function refusedPage<T>(
  code: ErrorCode,
  page: Page<T>,
  what: string,
  more: Pick<AgentAuthErrorOptions, "retryable" | "resume" | "hint" | "remedy"> = {},
): AgentAuthError {
  return new AgentAuthError(code, `${page.url}: ${what}`, {
    ...more,
    class: "refused",
    status: page.response.status,
    requestId: page.requestId,
    url: page.url,
    response: page.response,
  });
}
