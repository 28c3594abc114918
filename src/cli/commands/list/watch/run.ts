import type { ManagementClient } from "../../../../api/client.js";
import { AgentAuthError, isAgentAuthError, withHint } from "../../../../errors.js";
import { follow } from "../../../../http/deadline.js";
import type { ListFlags } from "../../../flags/list.js";
import { buildFilter } from "../../../listing/filters.js";
import type { ListKind } from "../../../listing/kinds.js";
import { writerOptions } from "../../../listing/print-list.js";
import { requireScope } from "../../../listing/scope.js";
import { unusableHint } from "../../../listing/service-flags.js";
import {
  COLUMNS,
  documentedValues,
  openListing,
  parseSort,
  readOptions,
  warnOfOrder,
} from "../../../listing/source.js";
import { selectColumns } from "../../../output/columns.js";
import type { CommandContext } from "../../../runtime/context.js";
import { backoff } from "./backoff.js";
import { durationText } from "./duration.js";
import { eventsView } from "./events-view.js";
import { checkWatchFlags, type WatchedFlags, type WatchFormat, watchFormat } from "./options.js";
import { type Poll, poll } from "./poll.js";
import { screenView } from "./screen-view.js";
import { type Until, untilHolds } from "./until.js";
import type { View } from "./view.js";

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
  const sorting = options.sort === undefined ? undefined : parseSort(options.sort, kind.noun);
  const format = watchFormat(options, settings, context.io);
  const { view, close } = openView(kind, options, format, context);
  const end = follow(context.signal, options.watchTimeout, () => watchTimeoutError(options));
  try {
    const until = options.until === undefined ? undefined : await untilHolds(options.until);
    const watched = context.with({ io: view.io, signal: end.signal });
    const service = await watched.management();
    await watch({ options, view, until, read: reader(service, { kind, options, scopeId, sorting }, watched) }, watched);
  } catch (thrown) {
    // Ctrl-C ends a watch normally; the signal decides the exit code.
    if (!context.signal.aborted) throw thrown;
  } finally {
    end.release();
    close();
  }
  return undefined;
}

function openView(
  kind: ListKind,
  options: WatchedFlags,
  format: WatchFormat,
  { io, now, signals }: CommandContext,
): { view: View; close(): void } {
  const set = COLUMNS[kind.noun];
  if (format === "ndjson") {
    const paths =
      options.columns === undefined ? undefined : selectColumns(options.columns, set).map(({ path }) => path);
    const view = eventsView(io, { paths, reveal: options.showSecrets === true, jq: options.jq, now });
    return { view, close() {} };
  }
  const output = { ...set, ...writerOptions(options, { now }) };
  // Reports an unknown column before the first poll.
  if (options.columns !== undefined) selectColumns(options.columns, set);
  const view = screenView(io, { format, output, noun: kind.noun, every: durationText(options.watch), now, signals });
  return { view, close: view.close };
}

interface Source {
  kind: ListKind;
  options: WatchedFlags;
  scopeId: string;
  sorting: ReturnType<typeof parseSort> | undefined;
}

/** Polls the list once; `7d` is relative to the poll. */
function reader(service: ManagementClient, { kind, options, scopeId, sorting }: Source, context: CommandContext) {
  let isFirst = true;
  let hasWarned = false;
  return async (): Promise<Poll> => {
    const filter = buildFilter(options, context.now(), documentedValues(kind.noun));
    const result = await poll({
      open: (onEnd) => {
        const maxItems = filter ? undefined : options.limit;
        const onSortingIgnored = isFirst ? warnOfOrder(context.io) : undefined;
        const listOptions = { ...readOptions(options), maxItems, signal: context.signal, onEnd, onSortingIgnored };
        return openListing(service, kind, scopeId, sorting, listOptions);
      },
      filter,
      limit: options.limit,
      // Later polls show the previous result instead of progress.
      progress: isFirst ? context.io.progress() : { update() {}, stop() {} },
    });
    if (isFirst && result.items.length === 0)
      for (const sentence of filter?.mistyped() ?? []) context.io.warn(sentence);
    isFirst = false;
    if (result.failure === undefined) return result;
    if (!hasWarned) context.io.warn(result.failure.message);
    hasWarned = true;
    const hint = unusableHint(kind.noun, kind.scope, scopeId, context.settings());
    return { ...result, failure: withHint(result.failure, hint) };
  };
}

interface Watching {
  options: WatchedFlags;
  view: View;
  until: Until | undefined;
  read(): Promise<Poll>;
}

async function watch(
  { options, view, until, read }: Watching,
  { io, signal, clock, now }: CommandContext,
): Promise<void> {
  let failures: number | undefined;
  for (;;) {
    const outcome = await settled(read());
    let wait = options.watch;
    if ("result" in outcome) {
      if (failures) io.say("polling works again");
      failures = 0;
      await view.show(outcome.result);
      if (until && (await until(outcome.result.items))) {
        if (outcome.result.failure) throw outcome.result.failure;
        return;
      }
    } else {
      const { error } = outcome;
      if (signal.aborted) throw signal.reason;
      // A failed first poll is an error; the URL or the token may be wrong.
      if (failures === undefined || !isAgentAuthError(error) || !error.retryable) throw error;
      wait = backoff(++failures, options.watch, error, now());
      if (failures === 1) io.warn(`the list cannot be read: ${error.message}; next attempt in ${durationText(wait)}`);
      await view.flushMessages();
    }
    await clock.sleep(wait, signal);
  }
}

async function settled(polling: Promise<Poll>): Promise<{ result: Poll } | { error: unknown }> {
  try {
    return { result: await polling };
  } catch (error) {
    return { error };
  }
}

function watchTimeoutError({ until, watchTimeout = 0 }: WatchedFlags): AgentAuthError {
  const why = until === undefined ? "" : ", and --until does not hold";
  return new AgentAuthError("timeout", `--watch-timeout ${durationText(watchTimeout)} expired${why}`, {
    class: "unavailable",
    hint: "allow more time with --watch-timeout, or leave it out to watch without a limit",
  });
}
