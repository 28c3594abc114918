/**
 * The wire types of the management interface as the sandbox sends them, derived from `openapi.yaml`: exact, every field
 * present. A client has to read more loosely than this.
 */

import type { components } from "../../api/schema.gen.js";

/** What kind of list: also the last segment of its path under `/api/v1`. */
export type ResourceName = "pool" | "domain" | "device";

type Schemas = components["schemas"];

/** A documented type with every field there, and nothing null: a server writes more strictly than a client reads. */
type Exact<T> = T extends object ? { [Key in keyof T]-?: Exact<NonNullable<T[Key]>> } : T;

/** One pool of agents inside a domain. Its status is `active`, `paused` or `archived`; the service documents none. */
export type SandboxPool = Exact<Schemas["Pool_Summary"]>;

/** One domain inside an account. Its status is like that of a pool. */
export type SandboxDomain = Exact<Schemas["Domain_Summary"]>;

/** One device of a pool. Its client secret is always the literal `<CLIENT_SECRET>`. */
export type SandboxDevice = Exact<Schemas["Device_Summary"]>;

/** A device at one moment: `at` has up to two decimals, and `remote_ip` is from a range reserved for documentation. */
export type SandboxInteraction = SandboxDevice["first_seen"];

/** How a device reaches the service. */
export type SessionType = SandboxDevice["session_type"];

/** Whether a device may still be used. */
export type DeviceStatus = SandboxDevice["status"];

/**
 * The position of a page in its list. `item_start` and `item_end` are one-based, and 0 on a page without items;
 * `page_index` is `floor(page_offset / page_size) + 1`, also where the offset is no multiple of the page size.
 */
export type SandboxPagination = Omit<Exact<Schemas["PaginationOutput"]>, NullableOffset> & {
  [Key in NullableOffset]: number | null;
};

type NullableOffset = "next_page_offset" | "previous_page_offset";

/** The order that was applied. */
export type SandboxSorting = Exact<Schemas["Sorting"]>;

/** Ascending or descending. Descending is the exact reverse of ascending, ties included. */
export type Direction = SandboxSorting["direction"];

/** A successful list answer. */
export interface ListEnvelope<T> {
  status: "success";
  pagination: SandboxPagination;
  sorting: SandboxSorting;
  summaries: T[];
}
