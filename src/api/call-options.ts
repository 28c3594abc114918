import { AgentAuthError } from "../errors.js";
import { HttpHeaders } from "../http/http-headers.js";
import { type CallLimits, checkLimits } from "../http/transport.js";
import { quote } from "../redact.js";
import { type OpenSorting, SORTING_ENCODINGS, type SortingEncoding, type SortText } from "./types.js";

/** Options of one call of the management client; each replaces that of the client. */
export interface CallOptions extends CallLimits {
  /** Aborts the call, also while it waits. */
  signal?: AbortSignal | undefined;
  /** Headers to add to each request of the call. The token and `User-Agent` of the client are not replaced. */
  headers?: Readonly<Record<string, string>> | Headers | undefined;
}

/** The headers of one call, without those that are the client's own. */
export function callHeaders(options: CallOptions): Record<string, string> {
  checkLimits(options);
  const headers = new HttpHeaders(options.headers);
  for (const name of ["accept", "authorization", "user-agent"]) headers.delete(name);
  return Object.fromEntries(headers);
}

/**
 * A check of `strict`. Each makes an error of what is otherwise read as it is:
 *
 * - `shape`: an answer or an item lacks a required field, or a field has another form than is documented
 * - `order`: the answer does not name the requested order, or the items are in another one
 * - `drift`: the list changes while it is read
 * - `nulls`: an optional field is absent or null; includes `shape`
 * - `fields`: there is a field that is not documented; includes `shape`
 */
export type Check = "shape" | "order" | "drift" | "nulls" | "fields";

const STRICT: readonly Check[] = ["shape", "order", "drift"];
const CHECKS: readonly Check[] = [...STRICT, "nulls", "fields"];

/** The checks of the `strict` option: `true` are shape, order and drift. @throws TypeError for a name that is none */
export function strictChecksOf(strict: boolean | "all" | readonly Check[] = false): ReadonlySet<Check> {
  const checks: readonly Check[] =
    strict === "all" ? CHECKS : strict === true ? STRICT : strict === false ? [] : strict;
  const unknown = checks.find((check) => !CHECKS.includes(check));
  if (unknown !== undefined) throw new TypeError(`strict: ${quote(unknown)} is none of ${CHECKS.join(", ")}`);
  return new Set(checks);
}

/** An order in parts. @throws TypeError for a text that is none */
export function sortingOf<Sorting extends OpenSorting>(
  sort: Sorting | SortText<Sorting> | undefined,
): Sorting | undefined {
  if (typeof sort !== "string") return sort;
  const [, field, direction] = /^([^:]+)(?::(asc|desc))?$/.exec(sort) ?? [];
  if (field === undefined) throw new TypeError(`sort ${quote(sort)} is not a field, alone or with :asc or :desc`);
  return { field, ...(direction !== undefined && { direction }) } as Sorting;
}

/**
 * Serialises the query of a list. Names and values are percent-encoded: strict servers refuse raw brackets.
 *
 * @throws TypeError for an encoding that is none
 */
export function querySerializer(encoding: SortingEncoding = "deep"): (query: Record<string, unknown>) => string {
  if (!SORTING_ENCODINGS.includes(encoding))
    throw new TypeError(`sorting ${quote(encoding)} is none of ${SORTING_ENCODINGS.join(", ")}`);
  return (query) =>
    Object.entries(query)
      .flatMap(([name, value]) => (isPresent(value) ? expandParameter(name, value, encoding) : []))
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join("&");
}

function expandParameter(name: string, value: unknown, encoding: SortingEncoding): [name: string, value: string][] {
  if (typeof value !== "object" || value === null) return [[name, String(value)]];
  if (name === "sorting" && encoding === "json") return [[name, JSON.stringify(value)]];
  const members = Object.entries(value).filter(([, member]) => isPresent(member));
  if (name !== "sorting" || encoding === "deep")
    return members.map(([key, member]) => [`${name}[${key}]`, String(member)]);
  const { field = "", direction } = Object.fromEntries(members);
  return [[name, isPresent(direction) ? `${field}:${direction}` : String(field)]];
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** What a call sets in place of the limits of the client. */
export function limitsOf({ timeoutMs, maxRetries }: CallOptions): CallLimits {
  return { timeoutMs, maxRetries };
}

/** @throws `AgentAuthError` `usage`: a program that passes on an id of an item may not have one */
export function requireId(name: string, id: unknown): void {
  if (typeof id === "string" && id !== "") return;
  throw new AgentAuthError("usage", `${name} must be a non-empty string, not ${quote(id)}`, { class: "usage" });
}
