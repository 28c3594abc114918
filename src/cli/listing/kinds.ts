import type { Device } from "../../api/types.js";

/** A pool, a domain or a device: the first two have a part of the fields of the last. */
export type ListItem = Partial<Device>;

/** One kind of list: its noun, and the scope that it needs. */
export interface ListKind {
  noun: "pools" | "domains" | "devices";
  scope: "account" | "domain" | "pool";
}
