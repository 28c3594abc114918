/** `list --watch`: polls a list until the watch ends. */

import type { ListingSummary } from "../../../api/page.js";
import { isUnusableItems } from "../../../api/pages.js";
import { AgentAuthError, isAgentAuthError, usageError, withHint } from "../../../errors.js";
import { followSignal } from "../../../http/deadline.js";
import { retryAfter } from "../../../http/retry.js";
import type { Settings } from "../../../profile/settings.js";
import type { ListFlags } from "../../flags/list.js";
import { durationText } from "../../flags/values.js";
import { buildFilter } from "../../listing/filters.js";
import { writerOptions } from "../../listing/print-list.js";
import { type ListItem, type ListKind, requireScope, unusableHint } from "../../listing/scope.js";
import { COLUMNS, documentedValues, openListing, parseSort, warnOfOrder } from "../../listing/source.js";
import { selectColumns } from "../../output/columns.js";
import { jqFilter } from "../../output/jq.js";
import { stringifyItems } from "../../output/safe-json.js";
import type { CommandContext } from "../../runtime/context.js";
import { eventsView, type Poll, shownCountText, tableView, type View } from "./watch-views.js";

type WatchedFlags = ListFlags & { watch: number };

/**
 * `list --watch`: polls the list until `--until` holds, the timeout expires, or a signal ends it.
 *
 * @throws `AgentAuthError` `timeout` when `--watch-timeout` expires; the error of the first poll, or of a later poll that
 * a retry would not fix
 */
export async function runWatch(kind: ListKind, options: ListFlags, context: CommandContext): Promise<undefined> {
  checkWatchFlags(options);
  const settings = context.settings();
  const scopeId = requireScope(kind.scope, settings, `${kind.noun} list`);
  const sort = options.sort === undefined ? undefined : parseSort(options.sort, kind.noun);
  const view = viewOf(kind, options, settings, context);
  const end = followSignal(context.signal, options.watchTimeout, () => watchTimeoutError(options));
  try {
    const until = options.until === undefined ? undefined : await untilHolds(options.until);
    const watched = context.with({ signal: end.signal });
    const poll = pollOf({ kind, options, scopeId, sort }, view, watched);
    await watch({ options, view, until, poll }, watched);
  } catch (thrown) {
    // Ctrl-C ends a watch normally; the signal decides the exit code.
    if (!context.signal.aborted) throw thrown;
  } finally {
    end.release();
  }
}

function checkWatchFlags(options: ListFlags): asserts options is WatchedFlags {
  const clash = (flag: string, why: string) =>
    usageError(`${flag} does not work with --watch`, `leave ${flag} out: ${why}`);
  if (options.watch === undefined) {
    const flag = options.until === undefined ? "--watch-timeout" : "--until";
    throw usageError(`${flag} needs --watch`, "add --watch, such as --watch=5s");
  }
  if (options.until?.trim() === "") throw usageError("--until is empty", "give a jq expression, such as 'length > 0'");
  if (options.offset !== undefined) throw clash("--offset", "each poll reads the list from its start");
  if (options.brief) throw clash("--brief", "each poll reads the whole list");
  if (options.csvRaw) throw clash("--csv-raw", "a watched list cannot be printed as CSV");
  if (options.limit !== undefined && options.until !== undefined) {
    throw usageError(
      "--limit does not work with --until",
      "the expression applies to the whole list: leave --limit out",
    );
  }
}

/** The view of the format that is named. The profile's format is ignored if it cannot show a changing list. */
function viewOf({ noun }: ListKind, options: WatchedFlags, settings: Settings, { io, now }: CommandContext): View {
  const set = COLUMNS[noun];
  const { output, json, jq, limit } = options;
  // Reports an unknown column before the first poll.
  const columns = options.columns === undefined ? undefined : selectColumns(options.columns, set);
  const named = output ?? (json ? "json" : undefined);
  const formats = `use -o ndjson (one event per line)${io.stdout.isTTY ? " or -o table (redrawn in place)" : ""}`;
  if (named === "table" || named === "wide") {
    if (!io.stdout.isTTY) throw usageError(`-o ${named} with --watch needs a terminal to draw on`, formats);
    const onEvents = "use -o ndjson (the expression runs on each event)";
    if (jq !== undefined) throw usageError(`--jq does not work with -o ${named} and --watch`, onEvents);
  } else if (named !== undefined && named !== "ndjson") {
    throw usageError(`${output === undefined ? "--json" : `-o ${named}`} does not work with --watch`, formats);
  } else if (named === "ndjson" || jq !== undefined || !io.stdout.isTTY) {
    if (limit === undefined)
      return eventsView(
        options,
        columns?.map(({ path }) => path),
        io,
        now,
      );
    const why = "leave --limit out: an item that moves behind the limit would look removed";
    throw usageError("--limit does not work with --watch", why);
  }
  const format = named ?? (settings.output?.value === "wide" ? "wide" : "table");
  const printed = { format, output: { ...set, ...writerOptions(options, { now }) } };
  const time = () => new Date(now()).toTimeString().slice(0, 8);
  const every = `every ${durationText(options.watch)}, Ctrl-C to stop`;
  return tableView((poll, isCut) => `${shownCountText(poll, noun, isCut)} at ${time()}, ${every}`, printed, io);
}

interface Watching {
  options: WatchedFlags;
  view: View;
  until: ((items: readonly ListItem[]) => Promise<boolean>) | undefined;
  poll(): Promise<Poll>;
}

async function watch({ options, view, until, poll }: Watching, { signal, clock, now }: CommandContext): Promise<void> {
  let failures: number | undefined;
  for (;;) {
    let wait = options.watch;
    try {
      const result = await poll();
      if (failures) view.say("polling works again");
      failures = 0;
      await view.show(result);
      if (until && (await until(result.items))) {
        if (result.failure) throw result.failure;
        return;
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // A failed first poll is an error; the URL or the token may be wrong.
      if (failures === undefined || !isAgentAuthError(error) || !error.retryable) throw error;
      wait = backoff(++failures, options.watch, error, now());
      if (failures === 1) view.warn(`the list cannot be read: ${error.message}; next attempt in ${durationText(wait)}`);
    }
    await clock.sleep(wait, signal);
  }
}

const MOST_MS = 60_000;

/** The wait before the next poll, after `failures` in a row: twice as long each time, up to a minute. */
export function backoff(failures: number, intervalMs: number, error: AgentAuthError, now: number): number {
  const backoff = Math.max(intervalMs, Math.min(MOST_MS, intervalMs * 2 ** failures));
  return Math.max(backoff, (error.response && retryAfter(error.response.headers, now)) ?? 0);
}

function watchTimeoutError({ until, watchTimeout = 0 }: WatchedFlags): AgentAuthError {
  const why = until === undefined ? "" : ", and --until does not hold";
  return new AgentAuthError("timeout", `--watch-timeout ${durationText(watchTimeout)} expired${why}`, {
    class: "unavailable",
    hint: "allow more time with --watch-timeout, or leave it out to watch without a limit",
  });
}

/**
 * The expression of `--until`. It holds when its last output is neither `false` nor `null`, as for `jq --exit-status`.
 *
 * @throws `AgentAuthError` `usage` for an invalid expression, before the first poll
 */
async function untilHolds(expression: string): Promise<NonNullable<Watching["until"]>> {
  const filter = jqFilter(expression, undefined, "--until");
  await filter("");
  return async (items) => {
    const last = (await filter(`[${stringifyItems(items, ",", { reveal: false })}]`)).at(-1);
    return last !== undefined && last !== null && last !== false;
  };
}

interface Watched {
  kind: ListKind;
  options: WatchedFlags;
  scopeId: string;
  sort: ReturnType<typeof parseSort> | undefined;
}

/**
 * A function that reads the list once. It throws the error of a failed page; the pages before it are dropped, since the
 * next poll starts again. The first poll shows progress, and warns of flags that the service or no item knows.
 */
function pollOf({ kind, options, scopeId, sort }: Watched, view: View, context: CommandContext): Watching["poll"] {
  const { io, signal, settings, now } = context;
  let isFirst = true;
  let hasWarned = false;
  return async () => {
    const service = await context.management();
    // `7d` is relative to the poll.
    const filter = buildFilter(options, now(), documentedValues(kind.noun));
    let summary: ListingSummary | undefined;
    const listing = openListing(service, kind, scopeId, options, {
      sort,
      limit: filter ? undefined : options.limit,
      signal,
      onSortingIgnored: isFirst ? warnOfOrder(io) : undefined,
      onEnd(end) {
        summary = end;
      },
    });
    const progress = isFirst ? io.progress() : undefined;
    const items: ListItem[] = [];
    const others: ListItem[] = [];
    let pages = 0;
    let failure: AgentAuthError | undefined;
    try {
      for await (const page of listing.pages()) {
        pages++;
        for (const item of page.items) (filter?.matches(item) === false ? others : items).push(item);
        progress?.update(`${items.length + others.length} of ${page.pagination.item_count ?? "?"}`);
        if (options.limit !== undefined && items.length >= options.limit) break;
      }
    } catch (thrown) {
      const isPartial = isAgentAuthError(thrown) && isAgentAuthError(thrown.cause) && thrown.class === "partial";
      if (!isUnusableItems(thrown)) throw isPartial ? thrown.cause : thrown;
      if (!hasWarned) view.warn(thrown.message);
      hasWarned = true;
      failure = withHint(thrown, unusableHint(kind.noun, kind.scope, scopeId, settings()));
    } finally {
      progress?.stop();
    }
    if (isFirst && items.length === 0) for (const sentence of filter?.mistyped() ?? []) io.warn(sentence);
    isFirst = false;
    // A duplicate has moved between two pages, and another item may have been missed there.
    const isWhole = summary?.complete === true && summary.drift.length === 0 && summary.duplicates === 0;
    const total = summary?.expected;
    return { items: items.slice(0, options.limit), others, total, isWhole, isOnePage: pages === 1, failure };
  };
}
