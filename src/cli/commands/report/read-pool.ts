import type { ManagementClient } from "../../../api/client.js";
import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import type { Filter } from "../../listing/filters.js";
import { parseSort } from "../../listing/source.js";
import { type ListEnding, readList } from "../../listing/summary.js";
import type { CommandContext } from "../../runtime/context.js";
import type { ReportFlags } from "./options.js";

/** The result of reading a pool. */
export interface Reading extends ListEnding {
  /** Devices in the pool, as the service reports. */
  total: number | undefined;
  /** The domain of the pool, as its first device has it. */
  domainId: unknown;
  /** The error that ended it early, after some devices were read. */
  failure: AgentAuthError | undefined;
}

const DEVICES = { noun: "devices", scope: "pool" } as const;

/**
 * Reads a pool page by page.
 *
 * @param add receives each device that matches the filter
 * @throws `AgentAuthError` if the first page fails, and for a signal; a later error is in the result
 */
export async function readPool(
  service: ManagementClient,
  { poolId, filter, options }: { poolId: string; filter: Filter | undefined; options: ReportFlags },
  add: (device: object) => void,
  context: CommandContext,
): Promise<Reading> {
  const sorting = options.sort === undefined ? undefined : parseSort(options.sort, DEVICES.noun);
  const request = { kind: DEVICES, scopeId: poolId, sorting, filter, options };
  const { end, selections } = readList(service, request, context);
  let total: number | undefined;
  let domainId: unknown;
  let failure: AgentAuthError | undefined;
  try {
    for await (const { page, items } of selections) {
      const { item_count: count } = page.pagination;
      if (typeof count === "number") total = count;
      domainId ??= page.items[0]?.domain_id;
      items.forEach(add);
    }
  } catch (thrown) {
    if (!isAgentAuthError(thrown) || thrown.class !== "partial") throw thrown;
    failure = thrown;
  }
  return { ...end, total, domainId, failure };
}

/** Pools among which the title is looked for. */
const MOST_POOLS = 1000;

/**
 * The title of a pool, from the list of its domain, since no operation reads one pool; undefined if it is not found in one
 * try. The report is whole without it.
 */
export async function readPoolTitle(
  service: ManagementClient,
  poolId: string,
  { domainId, failure }: Reading,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (typeof domainId !== "string" || failure !== undefined) return undefined;
  try {
    const options = { pageSize: MOST_POOLS, maxItems: MOST_POOLS, maxRetries: 0, signal };
    for await (const { id, title } of service.pools.list({ domain_id: domainId }, options)) {
      if (id === poolId) return typeof title === "string" && title !== "" ? title : undefined;
    }
  } catch (error) {
    if (signal.aborted) throw error;
  }
  return undefined;
}
