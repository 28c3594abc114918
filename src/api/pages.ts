import { AgentAuthError, isAgentAuthError, type UnusableItems } from "../errors.js";
import { type DriftSummary, DriftTracker } from "./drift-tracker.js";
import type { ListingSummary, Page, ReadOptions } from "./page.js";
import { OrderCheck, refusedPage, validatePagination } from "./page-checks.js";
import { type FetchPage, type Pace, Prefetcher } from "./prefetcher.js";
import { SeenIds } from "./seen-ids.js";

const MAX_EMPTY_PAGES = 50;
const DEFAULT_MAX_PAGES = 100_000;

interface ListingProgress {
  /** The offset that the listing began at. */
  readonly from: number;
  yielded: number;
  duplicates: number;
  /** How many items have no id. */
  unusable: number;
  /** The offsets of the first of them. */
  readonly positions: number[];
  /** Offset of the first item that was not yielded. */
  resume: number;
}

/** Offsets that an error names: a service without ids would fill the memory. */
const MOST_POSITIONS = 100;

/**
 * Reads pages in order until the service says there are no more.
 *
 * Complete or an error: numbers that contradict each other, an offset that does not advance, a list without end and a
 * list that ends too early are errors, with `resume` set, and of class `partial` once items were yielded. Items without
 * an id are left out, and the listing ends with an error after all others.
 * {@link DriftTracker} keeps the position in a list that changes.
 */
export async function* readPages<T extends object>(
  fetchPage: FetchPage<T>,
  options: ReadOptions,
  pace: Pace,
): AsyncGenerator<Page<T>, void, undefined> {
  const from = options.offset ?? 0;
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const progress: ListingProgress = { from, yielded: 0, duplicates: 0, unusable: 0, positions: [], resume: from };
  const prefetcher = new Prefetcher(fetchPage, options, pace);
  const seen = new SeenIds(from === 0);
  const tracker = new DriftTracker<T>(options, seen);
  const order = new OrderCheck(options);
  const { maxPages = DEFAULT_MAX_PAGES } = options;
  let emptyRun = 0;
  let summary: ListingSummary;
  let url: string;
  try {
    for (let pages = 1; ; pages++) {
      const position = progress.resume;
      const page = await prefetcher.next(position);
      const next = validatePagination(page);
      const decision = tracker.check(page);
      if ("rewind" in decision) {
        prefetcher.stopPrefetching();
        progress.resume = decision.rewind;
        if (pages === maxPages) throw tooManyPages(page, pages);
        continue;
      }
      order.check(page, tracker.stats.drift.length > 0);
      const raw = page.items.length;
      const used = seen.keepNew(page, limit - progress.yielded, decision.skip);
      progress.yielded += page.items.length;
      progress.duplicates += page.duplicates;
      progress.unusable += page.unusable.length;
      progress.positions.push(...page.unusable.slice(0, MOST_POSITIONS - progress.positions.length));
      emptyRun = raw === 0 ? emptyRun + 1 : 0;
      if (emptyRun > MAX_EMPTY_PAGES) {
        throw refusedPage("pagination_loop", page, `${MAX_EMPTY_PAGES} empty pages came in a row`);
      }
      const left = limit - progress.yielded;
      if (typeof next === "number" && left > 0) prefetcher.schedule(page, next, left);
      ({ url } = page);
      yield page;
      progress.resume = used < raw || typeof next !== "number" ? position + used : next;
      if (left <= 0) {
        const more = used < raw || typeof next === "number";
        summary = summaryOf(progress, tracker.stats, more ? progress.resume : undefined);
        break;
      }
      if (next === null) {
        summary = finish(page, progress, tracker.stats);
        break;
      }
      if (typeof next !== "number") throw next;
      if (pages === maxPages) throw tooManyPages(page, pages);
    }
  } catch (thrown) {
    throw withResume(thrown, progress);
  } finally {
    prefetcher.stop();
  }
  const { unusable: count, positions } = progress;
  if (count > 0) throw unusableItems(options.about, url, { count, positions }, summary.next);
  options.onEnd?.(summary);
}

function summaryOf(
  { from, yielded, duplicates }: ListingProgress,
  stats: DriftSummary,
  next: number | undefined,
): ListingSummary {
  const { count, drift, everCounted, hasGrown } = stats;
  const expected = count === undefined ? undefined : Math.max(0, count - from);
  // Without drift a duplicate is a row that the service counts twice; with drift it is a row that was read twice.
  const accounted = drift.length === 0 ? yielded + duplicates : yielded;
  // Some of the added items may be before the read position: the list is complete only if every counted item was yielded.
  const wanted = Math.max(expected ?? 0, hasGrown ? everCounted - from : 0);
  return { yielded, expected, duplicates, drift, complete: next === undefined && accounted >= wanted, next };
}

/**
 * A list that ends before its own count is reached is incomplete. An item added while the last page is built may be in
 * its count but not among its items; no other change of the list explains such an end.
 */
function finish<T>(page: Page<T>, progress: ListingProgress, stats: DriftSummary): ListingSummary {
  const { from, yielded, duplicates, unusable } = progress;
  const { count = 0, previousCount = count, reread } = stats;
  const reached = from + yielded + duplicates + unusable - reread;
  if (reached >= Math.min(count, previousCount)) return summaryOf(progress, stats, undefined);
  throw refusedPage(
    "bad_pagination",
    page,
    `the service says there are ${count} items, but its last page came after ${reached}`,
  );
}

/**
 * The error after all items that have an id.
 *
 * @param about what is listed
 * @param next where a listing continues that ended at a limit
 */
export function unusableItems(
  about: string,
  url: string,
  unusable: UnusableItems,
  next: number | undefined,
): AgentAuthError {
  const { count, positions } = unusable;
  const named = `${positions.slice(0, 10).join(", ")}${count > 10 ? ", …" : ""}`;
  const have = count === 1 ? "has no id, at offset" : "have no id, at offsets";
  return new AgentAuthError("unusable_items", `${count} of the ${about} ${have} ${named}; all others were listed`, {
    class: "partial",
    url,
    resume: next,
    unusable,
    remedy: next === undefined ? undefined : { action: "resume", offset: next },
  });
}

/** Whether an error says that all items of a list came but those without an id. */
export function isUnusableItems(thrown: unknown): thrown is AgentAuthError {
  return isAgentAuthError(thrown) && thrown.code === "unusable_items";
}

function tooManyPages({ url }: { url: string }, pages: number): AgentAuthError {
  const message = `${url}: the listing did not end within ${pages} pages`;
  const remedy = { action: "configure", option: "maxPages" } as const;
  return new AgentAuthError("page_cap", message, { class: "refused", url, hint: "allow more with maxPages", remedy });
}

const PAGE_ERRORS = new WeakMap<AgentAuthError, AgentAuthError>();

/** The error of the page that a listing failed at, without what the listing added. */
export function pageError(thrown: unknown): unknown {
  return (thrown instanceof AgentAuthError && PAGE_ERRORS.get(thrown)) || thrown;
}

/** The error that a listing ends with: where to resume, and of class `partial` once items were yielded. */
function withResume(thrown: unknown, progress: ListingProgress): unknown {
  if (!(thrown instanceof AgentAuthError)) return thrown;
  const partial = progress.yielded > 0 && thrown.class !== "aborted";
  const offset = thrown.resume ?? progress.resume;
  const error = new AgentAuthError(
    thrown.code,
    partial ? `the listing ended after ${progress.yielded} items: ${thrown.message}` : thrown.message,
    {
      class: partial ? "partial" : thrown.class,
      retryable: thrown.retryable,
      resume: offset,
      status: thrown.status,
      requestId: thrown.requestId,
      url: thrown.url,
      hint: thrown.hint,
      remedy: thrown.remedy ?? (partial ? { action: "resume", offset } : undefined),
      response: thrown.response,
      // Of a listing that yielded nothing it would be the same error once more.
      cause: partial ? thrown : thrown.cause,
    },
  );
  PAGE_ERRORS.set(error, thrown);
  return error;
}
