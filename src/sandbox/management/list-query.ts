import { quote } from "../../redact.js";
import type { Direction, SandboxPagination, SandboxSorting } from "../data/wire-types.js";
import { Refusal } from "../http/sandbox-response.js";

/** The validated parameters of a list request. */
export interface ListingQuery {
  /** The id of the parent: a domain, an account or a pool. */
  scope: string;
  sorting: SandboxSorting;
  offset: number;
  /** Items per page, at most the largest page size. */
  size: number;
}

/** The parameters that a list accepts. */
export interface ListingRules {
  /** The query parameter with the id of the parent. */
  scope: string;
  /** The prefix of these ids. */
  prefix: string;
  /** The fields that can be sorted by; the first is the default. */
  fields: readonly string[];
  pageSize: number;
  maxPageSize: number;
}

/** Reads the offset of a request that is not validated yet: faults select requests by it. */
export function peekOffset(query: URLSearchParams): number {
  const offset = Number(query.get("pagination[offset]") ?? 0);
  return Number.isSafeInteger(offset) ? offset : 0;
}

/** Reads and validates the query of a list request; unknown parameters are ignored. */
export function readListingQuery(query: URLSearchParams, rules: ListingRules): ListingQuery {
  return {
    scope: readScope(query, rules),
    sorting: {
      direction: readOneOf(query, "sorting[direction]", ["asc", "desc"]) as Direction,
      field: readOneOf(query, "sorting[field]", rules.fields),
    },
    offset: readInteger(query, "pagination[offset]", 0) ?? 0,
    size: Math.min(readInteger(query, "pagination[page_size]", 1) ?? rules.pageSize, rules.maxPageSize),
  };
}

function readScope(query: URLSearchParams, { scope, prefix }: ListingRules): string {
  const id = readOnce(query, scope);
  if (id === undefined || id === "") throw new Refusal(400, "required_value", `${scope} is required`);
  if (!id.startsWith(prefix)) {
    const message = `${scope} must be an id that begins with ${prefix}, not ${quote(id)}`;
    throw new Refusal(400, "unexpected_ref_type", message);
  }
  return id;
}

function readOneOf(query: URLSearchParams, name: string, allowed: readonly string[]): string {
  const value = readOnce(query, name) ?? allowed[0] ?? "";
  if (allowed.includes(value)) return value;
  throw new Refusal(400, "invalid_value", `${name} must be one of ${allowed.join(", ")}, not ${quote(value)}`);
}

function readInteger(query: URLSearchParams, name: string, min: number): number | undefined {
  const text = readOnce(query, name);
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (value >= min) return value;
  throw new Refusal(400, "invalid_value", `${name} must be an integer of at least ${min}, not ${quote(text)}`);
}

function readOnce(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new Refusal(400, "invalid_value", `${name} must be given once`);
  return values[0];
}

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
export function paginationOf({ offset, size, count, start, end, last }: PageWindow): SandboxPagination {
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
