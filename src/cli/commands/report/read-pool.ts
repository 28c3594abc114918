import type { ManagementClient } from "../../../api/client.js";
import type { Drift, ListingSummary } from "../../../api/page.js";
import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import { quote } from "../../../redact.js";
import type { Filter } from "../../listing/filters.js";
import { openListing, parseSort, readOptions, warnOfOrder } from "../../listing/source.js";
import { selectMatching } from "../../listing/summary.js";
import type { CommandContext } from "../../runtime/context.js";
import { numberText } from "./numbers.js";
import type { ReportFlags } from "./options.js";

/** The result of reading a pool. */
export interface Reading {
  /** Devices read. */
  read: number;
  /** Devices counted: those that match the filter. */
  counted: number;
  /** Devices in the pool, as the service reports. */
  total?: number;
  /** The domain of the pool, as its first device has it. */
  domainId?: unknown;
  drift: Drift[];
  verdict?: ListingSummary;
  /** Whether the limit was reached before the end of the pool. */
  isLimited: boolean;
  /** The error that ended it early, after some devices were read. */
  failure?: AgentAuthError;
}

const DEVICES = { noun: "devices", scope: "pool" } as const;

/**
 * Reads a pool page by page.
 *
 * @throws `AgentAuthError` if the first page fails, and for a signal; a later error is in the result
 */
export async function readPool(
  service: ManagementClient,
  { id, filter, add }: { id: string; filter: Filter | undefined; add(device: object): void },
  options: ReportFlags,
  context: CommandContext,
): Promise<Reading> {
  const reading: Reading = { read: 0, counted: 0, drift: [], isLimited: false };
  const sorting = options.sort === undefined ? undefined : parseSort(options.sort, DEVICES.noun);
  const listing = openListing(service, DEVICES, id, sorting, {
    ...readOptions(options),
    maxItems: filter ? undefined : options.limit,
    signal: context.signal,
    onDrift: (drift) => reading.drift.push(drift),
    onSortingIgnored: warnOfOrder(context.io),
    onEnd: (verdict) => {
      reading.verdict = verdict;
    },
  });
  const progress = context.io.progress();
  try {
    const about = `devices of pool ${quote(id)}`;
    for await (const { page, items, next } of selectMatching(listing.pages(), about, filter, options.limit)) {
      const count = page.pagination.item_count;
      if (typeof count === "number") reading.total = count;
      reading.read += page.items.length;
      reading.domainId ??= page.items[0]?.domain_id;
      const total = reading.total === undefined ? "?" : numberText(reading.total);
      progress.update(`devices: ${numberText(reading.read)} of ${total}`);
      for (const item of items) add(item);
      reading.counted += items.length;
      reading.isLimited = next !== undefined;
    }
    reading.isLimited ||= reading.verdict?.next !== undefined;
  } catch (thrown) {
    if (!isAgentAuthError(thrown) || thrown.class !== "partial") throw thrown;
    reading.failure = thrown;
  } finally {
    progress.stop();
  }
  return reading;
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
