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

/** The values of the `sorting` option. */
export const SORTING_ENCODINGS: readonly SortingEncoding[] = ["deep", "json", "field:direction"];
