import type { SandboxData } from "../data/data.js";
import { ID_PREFIXES } from "../data/ids.js";
import { PoolDevices } from "../data/pool-devices.js";
import { DEVICE_FIELDS, SortedList, SUMMARY_FIELDS, type Summary } from "../data/sorted-list.js";
import type { ListEnvelope, ResourceName, SandboxDomain, SandboxPool, SandboxSorting } from "../data/wire-types.js";
import { type FaultController, findFault } from "../faults/controller.js";
import type { Fault } from "../faults/faults.js";
import { reshape } from "../faults/reshape.js";
import type { RoundTrip, SandboxPart } from "../faults/round-trip.js";
import { tokenGuard } from "../http/request-guard.js";
import { jsonResponse, READ_METHODS, Refusal, requireMethod, type SandboxResponse } from "../http/sandbox-response.js";
import { type PageWindow, paginationOf, peekOffset, readListingQuery } from "./list-query.js";

const PREFIX = "/api/v1";

/** What the management API needs. */
export interface ManagementSettings {
  data: SandboxData;
  faults: FaultController;
  apiToken: string;
  latencyMs: number;
  pageSize: number;
  maxPageSize: number;
}

/** How a kind of list differs from its siblings. */
interface Resource {
  scope: string;
  prefix: string;
  fields: readonly string[];
  find(data: SandboxData, scope: string): SortedList<Summary> | undefined;
}

const RESOURCES: Readonly<Record<ResourceName, Resource>> = {
  pool: {
    scope: "domain_id",
    prefix: ID_PREFIXES.domain,
    fields: SUMMARY_FIELDS,
    find: (data, scope) => listOf(data.findPools(scope)),
  },
  domain: {
    scope: "account_id",
    prefix: ID_PREFIXES.account,
    fields: SUMMARY_FIELDS,
    find: (data, scope) => listOf(data.findDomains(scope)),
  },
  device: {
    scope: "pool_id",
    prefix: ID_PREFIXES.pool,
    fields: DEVICE_FIELDS,
    find: (data, scope) => data.findDevices(scope),
  },
};

/** Domains and pools: few enough to sort on every request. */
function listOf(
  items: (SandboxPool | SandboxDomain)[] | undefined,
): SortedList<SandboxPool | SandboxDomain> | undefined {
  return items && new SortedList(items);
}

/** Which list a path names, if any. */
function resourceOf(path: string): ResourceName | undefined {
  const name = path.startsWith(`${PREFIX}/`) ? path.slice(PREFIX.length + 1) : "";
  return Object.hasOwn(RESOURCES, name) ? (name as ResourceName) : undefined;
}

/** The management API: three lists below `/api/v1`. */
export function managementPart(settings: ManagementSettings): SandboxPart {
  const authenticate = tokenGuard(settings.apiToken);
  return {
    owns: (path) => path === PREFIX || path.startsWith(`${PREFIX}/`),
    faulty: true,
    latency: settings.latencyMs,
    target({ path, query }) {
      const resource = resourceOf(path);
      return { resource, offset: resource && peekOffset(query) };
    },
    handle(roundTrip) {
      authenticate(roundTrip.request);
      const name = resourceOf(roundTrip.path);
      if (!name) throw new Refusal(404, "not_found", "there is nothing at this path");
      requireMethod(roundTrip.method, READ_METHODS);
      return answerList(settings, name, roundTrip);
    },
  };
}

function answerList(settings: ManagementSettings, name: ResourceName, { query, faults }: RoundTrip): SandboxResponse {
  const resource = RESOURCES[name];
  const listQuery = readListingQuery(query, { ...settings, ...resource });
  const list = resource.find(settings.data, listQuery.scope);
  if (!list) throw new Refusal(404, "not_found", `there is no such ${resource.scope}`);
  if (list instanceof PoolDevices) changeDevices(list, listQuery.sorting, faults);
  const size = findFault(faults, "page-size")?.size ?? listQuery.size;
  const window = windowOf(
    settings.faults,
    `${name} ${listQuery.scope}`,
    { ...listQuery, size, count: list.count },
    faults,
  );
  const envelope: ListEnvelope<Summary> = {
    status: "success",
    pagination: paginationOf(window),
    sorting: listQuery.sorting,
    summaries: list.slice(listQuery.sorting, window.start, window.end),
  };
  reshape(envelope, faults);
  return jsonResponse(envelope);
}

type PageRequest = Pick<PageWindow, "offset" | "size" | "count">;

function windowOf(
  { emptyPages }: FaultController,
  list: string,
  { offset, size, count }: PageRequest,
  faults: readonly Fault[],
): PageWindow {
  const fault = findFault(faults, "empty-page");
  if (fault) {
    // A fault that strikes the first page empties the second: a reader that fetches ahead sees it too.
    const at = fault.offset ?? emptyPages.free(list, offset > 0 ? offset : size);
    emptyPages.add(list, at, (fault.pages ?? 1) * size);
  }
  const start = Math.min(emptyPages.position(list, offset), count);
  const end = Math.min(emptyPages.position(list, offset + size), count);
  return { offset, size, count, start, end, last: emptyPages.end(list, count) };
}

/** Inserts and deletes devices as the faults require. */
function changeDevices(devices: PoolDevices, order: SandboxSorting, faults: readonly Fault[]): void {
  for (const fault of faults) {
    if (fault.kind !== "insert" && fault.kind !== "delete") continue;
    const { count = 1, position = 0 } = fault;
    if (fault.kind === "insert") for (let i = 0; i < count; i++) devices.insertAt(order, position);
    else devices.deleteAt(order, position, count);
  }
}
