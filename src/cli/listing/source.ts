/** What `pools list`, `domains list` and `devices list` read, and in which order. */

import type { ManagementClient } from "../../api/client.js";
import type { Listing, ResourceOperations } from "../../api/listing.js";
import { type ListOptions, orderText } from "../../api/page.js";
import { SHAPES } from "../../api/shapes.js";
import type { OpenSorting } from "../../api/types.js";
import { usageError } from "../../errors.js";
import { suggest } from "../../http/suggest.js";
import { quote } from "../../redact.js";
import type { ListFlags } from "../flags/list.js";
import type { Io } from "../io/io.js";
import { type ColumnSet, DEVICE, DOMAIN, POOL } from "../output/columns.js";
import { SORTING_HINT } from "../runtime/hints.js";
import type { DocumentedValues } from "./filters.js";
import { LIST_KINDS, type ListItem, type ListKind } from "./scope.js";

/** The fields that a kind of list is known to be sorted by; the service does not say them of pools and domains. */
export const SORT_FIELDS: Readonly<Record<ListKind["noun"], readonly string[]>> = {
  pools: [],
  domains: [],
  devices: SHAPES.deviceSorting.properties?.["field"]?.enum ?? [],
};

export const COLUMNS: Readonly<Record<ListKind["noun"], ColumnSet>> = { pools: POOL, domains: DOMAIN, devices: DEVICE };

/** An order: `--sort` in parts. */
export interface SortFlag {
  field: string;
  direction?: "asc" | "desc";
}

/** The values of the fields that can be filtered by, as far as the service says what they are. */
export function documentedValues(noun: ListKind["noun"]): DocumentedValues {
  if (noun !== "devices") return {};
  const { status, session_type: sessionType } = SHAPES.device.properties ?? {};
  return { status: status?.enum ?? [], session_type: sessionType?.enum ?? [] };
}

/** Warns of an order that the service did not apply. */
export function warnOfOrder(io: Io): NonNullable<ListOptions["onSortingIgnored"]> {
  return ({ requested, applied }) =>
    io.warn(
      `the service ignored --sort: ${orderText(requested)} was requested, and its answer names ${orderText(applied)}; ${SORTING_HINT}`,
    );
}

/** Pools and domains have a part of a device's fields; filters and writers take what is there. */
type Operations = ResourceOperations<Record<string, string>, OpenSorting, ListItem & { id: string }>;

function scopeName(noun: ListKind["noun"]): string {
  return `${LIST_KINDS[noun].scope}_id`;
}

/** The list of one kind in a scope, read as the flags say. */
export function openListing(
  service: ManagementClient,
  { noun }: ListKind,
  id: string,
  { pageSize, concurrency, offset, strict }: ListFlags,
  given: ListOptions<OpenSorting>,
): Listing<ListItem> {
  const operations = service[noun] as unknown as Operations;
  return operations.list({ [scopeName(noun)]: id }, { pageSize, concurrency, offset, strict, ...given });
}

/** One item of a scope. @throws `AgentAuthError` `not_found` */
export function getItem(
  service: ManagementClient,
  noun: ListKind["noun"],
  { scopeId, id }: { scopeId: string; id: string },
  options: ListOptions,
): Promise<ListItem> {
  const operations = service[noun] as unknown as Operations;
  return operations.get({ [scopeName(noun)]: scopeId, id }, options);
}

/**
 * `field`, `field:asc` or `field:desc`; the fields of a device list are known, those of the others are the service's.
 *
 * @throws `AgentAuthError` `usage`
 */
export function parseSort(flag: string, noun: ListKind["noun"]): SortFlag {
  const [field = "", direction, ...rest] = flag.split(":");
  const complain = (hint: string) => usageError(`--sort ${quote(flag)} is not an order`, hint);
  if (field === "" || rest.length > 0) throw complain("give a field, with :asc or :desc behind it if you like");
  const known = SORT_FIELDS[noun];
  if (known.length > 0 && !known.includes(field)) {
    const suggestion = suggest(field, known);
    throw complain(
      `${suggestion === undefined ? "" : `did you mean ${suggestion}? `}${noun} are sorted by ${known.join(", ")}`,
    );
  }
  if (direction === undefined) return { field };
  if (direction !== "asc" && direction !== "desc") throw complain("the direction is asc or desc");
  return { field, direction };
}
