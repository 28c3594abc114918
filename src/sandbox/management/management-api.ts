import { quote } from "../../redact.js";
import type { SandboxData } from "../data/data.js";
import { DEVICE_FIELDS, PoolDevices, SortedList, SUMMARY_FIELDS, type Summary } from "../data/pool-devices.js";
import {
  type Direction,
  ID_PREFIXES,
  type ListEnvelope,
  type ResourceName,
  type SandboxPagination,
  type SandboxSorting,
} from "../data/sample-device.js";
import {
  type EmptyPages,
  type FaultController,
  findFault,
  type RoundTrip,
  type SandboxPart,
} from "../faults/controller.js";
import { reshape } from "../faults/effects.js";
import type { Fault } from "../faults/faults.js";
import type { SandboxResponse } from "../http/requests.js";
import { jsonResponse, READ_METHODS, Refusal, requireMethod, tokenGuard } from "../http/requests.js";

const PREFIX = "/api/v1";
const OFFSET = "pagination[offset]";
const PAGE_SIZE = "pagination[page_size]";

export interface ManagementSettings {
  data: SandboxData;
  faults: FaultController;
  apiToken: string;
  pageSize: number;
  maxPageSize: number;
}

interface Resource {
  /** The query parameter with the id of the parent: a domain, an account or a pool. */
  scope: string;
  prefix: string;
  /** The fields that can be sorted by; the first is the default. */
  fields: readonly string[];
  find(data: SandboxData, scope: string): SortedList<Summary> | undefined;
}

const RESOURCES: Readonly<Record<ResourceName, Resource>> = {
  pool: {
    scope: "domain_id",
    prefix: ID_PREFIXES.domain,
    fields: SUMMARY_FIELDS,
    find: (data, scope) => buildList(data.findPools(scope)),
  },
  domain: {
    scope: "account_id",
    prefix: ID_PREFIXES.account,
    fields: SUMMARY_FIELDS,
    find: (data, scope) => buildList(data.findDomains(scope)),
  },
  device: {
    scope: "pool_id",
    prefix: ID_PREFIXES.pool,
    fields: DEVICE_FIELDS,
    find: (data, scope) => data.findDevices(scope),
  },
};

/** Domains and pools: few enough to sort on every request. */
function buildList(items: Summary[] | undefined): SortedList<Summary> | undefined {
  return items && new SortedList(items);
}

function findResource(path: string): ResourceName | undefined {
  const name = path.startsWith(`${PREFIX}/`) ? path.slice(PREFIX.length + 1) : "";
  return Object.hasOwn(RESOURCES, name) ? (name as ResourceName) : undefined;
}

/** The management API: three lists below `/api/v1`. */
export function managementPart(settings: ManagementSettings): SandboxPart {
  const authenticate = tokenGuard(settings.apiToken);
  return {
    owns: (path) => path === PREFIX || path.startsWith(`${PREFIX}/`),
    faulty: true,
    target({ path, query }) {
      const resource = findResource(path);
      if (resource === undefined) return {};
      return { resource, offset: peekNumber(query, OFFSET, 0), size: peekNumber(query, PAGE_SIZE, settings.pageSize) };
    },
    handle(roundTrip) {
      authenticate(roundTrip.request);
      const name = findResource(roundTrip.path);
      if (!name) throw new Refusal(404, "not_found", "there is nothing at this path");
      requireMethod(roundTrip.method, READ_METHODS);
      return respondWithList(settings, name, roundTrip);
    },
  };
}

function respondWithList(
  settings: ManagementSettings,
  name: ResourceName,
  { query, faults }: RoundTrip,
): SandboxResponse {
  const resource = RESOURCES[name];
  const scope = readScope(query, resource);
  const sorting: SandboxSorting = {
    direction: readChoice(query, "sorting[direction]", ["asc", "desc"]) as Direction,
    field: readChoice(query, "sorting[field]", resource.fields),
  };
  const offset = readInteger(query, OFFSET, 0) ?? 0;
  const requestedSize = readInteger(query, PAGE_SIZE, 1) ?? settings.pageSize;
  const list = resource.find(settings.data, scope);
  if (!list) throw new Refusal(404, "not_found", `there is no such ${resource.scope}`);
  if (list instanceof PoolDevices) changeDevices(list, sorting, faults);
  const size = findFault(faults, "page-size")?.size ?? Math.min(requestedSize, settings.maxPageSize);
  const page = { offset, size, count: list.count };
  const window = readWindow(settings.faults.emptyPages(`${name} ${scope}`), page, faults);
  const envelope: ListEnvelope<Summary> = {
    status: "success",
    pagination: buildPagination(window),
    sorting,
    summaries: list.slice(sorting, window.start, window.end),
  };
  reshape(envelope, faults);
  return jsonResponse(envelope);
}

function readWindow(
  emptyPages: EmptyPages,
  { offset, size, count }: Pick<PageWindow, "offset" | "size" | "count">,
  faults: readonly Fault[],
): PageWindow {
  const fault = findFault(faults, "empty-page");
  if (fault) {
    // A fault that strikes the first page empties the second: a reader that fetches ahead sees it too.
    const at = fault.offset ?? emptyPages.free(offset > 0 ? offset : size);
    emptyPages.add(at, (fault.pages ?? 1) * size);
  }
  const start = Math.min(emptyPages.position(offset), count);
  const end = Math.min(emptyPages.position(offset + size), count);
  return { offset, size, count, start, end, last: emptyPages.end(count) };
}

function changeDevices(devices: PoolDevices, order: SandboxSorting, faults: readonly Fault[]): void {
  for (const fault of faults) {
    if (fault.kind !== "insert" && fault.kind !== "delete") continue;
    const { count = 1, position = 0 } = fault;
    if (fault.kind === "insert") for (let i = 0; i < count; i++) devices.insertAt(order, position);
    else devices.deleteAt(order, position, count);
  }
}

/** Reads a number of a request that is not validated yet: faults select requests by it. */
function peekNumber(query: URLSearchParams, name: string, fallback: number): number {
  const value = Number(query.get(name) ?? fallback);
  return Number.isSafeInteger(value) ? value : fallback;
}

function readScope(query: URLSearchParams, { scope, prefix }: Resource): string {
  const id = readOnce(query, scope);
  if (id === undefined || id === "") throw new Refusal(400, "required_value", `${scope} is required`);
  if (!id.startsWith(prefix)) {
    const message = `${scope} must be an id that begins with ${prefix}, not ${quote(id)}`;
    throw new Refusal(400, "unexpected_ref_type", message);
  }
  return id;
}

function readChoice(query: URLSearchParams, name: string, allowed: readonly string[]): string {
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

interface PageWindow {
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
function buildPagination({ offset, size, count, start, end, last }: PageWindow): SandboxPagination {
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
