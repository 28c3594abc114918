import { usageError } from "../errors.js";
import { HttpHeaders } from "../http/http-message.js";
import { type CallLimits, checkLimits } from "../http/transport.js";
import { quote } from "../redact.js";
import type { components } from "./schema.gen.js";

type Schemas = components["schemas"];

/** A closed set of strings that a newer service may widen: known values complete in an editor, others pass through. */
export type Open<T extends string> = T | (string & {});

/** A wire type for reading: enums are open except `type`, which tells items apart; everything else is as in `openapi.yaml`. */
export type Wire<T> = T extends string
  ? string extends T
    ? T
    : Open<T>
  : T extends readonly [unknown, unknown]
    ? T
    : T extends readonly (infer Item)[]
      ? Wire<Item>[]
      : T extends object
        ? { [Key in keyof T]: Key extends "type" ? T[Key] : Wire<T[Key]> }
        : T;

// Each is an interface with a field that is declared in it: otherwise an editor and the compiler show all of its fields in
// place of its name.

/** A pool (`Pool_Summary`): the unit that has its own authorization server. */
export interface Pool extends Wire<Schemas["Pool_Summary"]> {
  /** Pool identifier. */
  id: string;
}

/** A domain (`Domain_Summary`): holds pools. */
export interface Domain extends Wire<Schemas["Domain_Summary"]> {
  /** Domain identifier. */
  id: string;
}

/** A device (`Device_Summary`): an agent, script or browser that was seen in a pool. */
export interface Device extends Wire<Omit<Schemas["Device_Summary"], "dynamic_client_details" | SnapshotField>> {
  /** Details of the dynamically registered client. */
  dynamic_client_details?: DynamicClientDetails | null;
  /** Snapshot at the first interaction. */
  first_seen?: InteractionDetails | null;
  /** Snapshot at the latest interaction. */
  last_seen?: InteractionDetails | null;
}

type SnapshotField = "first_seen" | "last_seen";

/** The dynamically registered client of a device; its secret is hidden from printing and serialising. */
export interface DynamicClientDetails extends Wire<Schemas["Dynamic_Client_Details"]> {
  /** Client secret of the registered client. */
  client_secret?: string | null;
}

/** A snapshot of a device at one moment. */
export interface InteractionDetails extends Wire<Schemas["InteractionDetails"]> {
  /** The moment, in Unix seconds (UTC). */
  at?: number | null;
}

/**
 * The numbers of a page, as the service sent them. A page whose numbers contradict each other is an error; that none is
 * missing is a check of `strict`.
 */
export interface PaginationOutput extends Wire<Schemas["PaginationOutput"]> {
  /** Offset of the next page; null on the last page. */
  next_page_offset: number | null;
}

/** The order that the service says it applied. */
export interface Sorting extends Wire<Schemas["Sorting"]> {
  /** Ascending or descending. */
  direction?: Open<"asc" | "desc"> | null;
}

/** The order of a device list. */
export interface DeviceSorting {
  /** What to sort by. */
  field?: "id" | "last_seen" | "status" | "title";
  /** Ascending or descending. */
  direction?: "asc" | "desc";
}

/** The order of a pool or domain list; the service does not document the fields that it sorts by. */
export interface OpenSorting {
  /** What to sort by; sent as it is. */
  field?: string;
  /** Ascending or descending. */
  direction?: "asc" | "desc";
}

/** An order as text: `title`, `title:asc` or `title:desc`. */
export type SortText<Sorting extends OpenSorting> =
  NonNullable<Sorting["field"]> extends infer Field extends string ? Field | `${Field}:${"asc" | "desc"}` : never;

/**
 * How `sorting` is sent, which the service does not document:
 *
 * - `deep`: `sorting[field]=title&sorting[direction]=asc`, like the pagination parameters
 * - `json`: `sorting={"field":"title","direction":"asc"}`
 * - `field:direction`: `sorting=title:asc`
 */
export type SortingEncoding = "deep" | "json" | "field:direction";

export const SORTING_ENCODINGS: readonly SortingEncoding[] = ["deep", "json", "field:direction"];

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
export function readStrictChecks(strict: boolean | "all" | readonly Check[] = false): ReadonlySet<Check> {
  const checks: readonly Check[] =
    strict === "all" ? CHECKS : strict === true ? STRICT : strict === false ? [] : strict;
  const unknown = checks.find((check) => !CHECKS.includes(check));
  if (unknown !== undefined) throw new TypeError(`strict: ${quote(unknown)} is none of ${CHECKS.join(", ")}`);
  return new Set(checks);
}

/** An order in parts. @throws TypeError for a text that is none */
export function readSorting<Sorting extends OpenSorting>(
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
export function readCallLimits({ timeoutMs, maxRetries }: CallOptions): CallLimits {
  return { timeoutMs, maxRetries };
}

/** @throws `AgentAuthError` `usage`: a program that passes on an id of an item may not have one */
export function requireId(name: string, id: unknown): void {
  if (typeof id === "string" && id !== "") return;
  throw usageError(`${name} must be a non-empty string, not ${quote(id)}`);
}
