import type { components } from "./schema.gen.js";

type Schemas = components["schemas"];

/** A closed set of strings that a newer service may widen: known values complete in an editor, others pass through. */
export type Open<T extends string> = T | (string & {});

/** A wire type for reading: enums are open, everything else is as in `openapi.yaml`. */
export type Wire<T> = T extends string
  ? string extends T
    ? T
    : Open<T>
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Key in keyof T]: Wire<T[Key]> }
      : T;

/** A pool (`Pool_Summary`): the unit that has its own authorization server. */
export type Pool = Wire<Schemas["Pool_Summary"]>;
/** A domain (`Domain_Summary`): holds pools. */
export type Domain = Wire<Schemas["Domain_Summary"]>;
/** A device (`Device_Summary`): an agent, script or browser that was seen in a pool. */
export type Device = Wire<Schemas["Device_Summary"]>;
/** A snapshot of a device at one moment; `at` is in Unix seconds. */
export type InteractionDetails = Wire<Schemas["InteractionDetails"]>;
/** The numbers of a page, as the service sent them. */
export type PaginationOutput = Wire<Schemas["PaginationOutput"]>;
/** The order that the service says it applied. */
export type Sorting = Wire<Schemas["Sorting"]>;

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
