import { quote } from "../../redact.js";
import { Refusal } from "../http/round-trip.js";
import type { Direction, Sorting } from "../wire-types.js";

/** What a list request asks for, checked. */
export interface ListingQuery {
  /** The id of what the list belongs to. */
  scope: string;
  sorting: Sorting;
  offset: number;
  /** Already cut to the largest page that is given. */
  size: number;
}

/** What a list accepts. */
export interface ListingRules {
  /** The query parameter that says what the list belongs to. */
  scope: string;
  /** What the ids of that begin with. */
  prefix: string;
  /** The fields that can be sorted by; the first is the default. */
  fields: readonly string[];
  pageSize: number;
  maxPageSize: number;
}

/** Reads the offset of a request loosely, for what has to know it before the request is checked. */
export function peekOffset(query: URLSearchParams): number {
  const offset = Number(query.get("pagination[offset]") ?? 0);
  return Number.isSafeInteger(offset) ? offset : 0;
}

/** Reads and checks the query of a list request; parameters that the service does not know are ignored. */
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
    throw new Refusal(
      400,
      "unexpected_ref_type",
      `${scope} must be an id that begins with ${prefix}, not ${quote(id)}`,
    );
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
