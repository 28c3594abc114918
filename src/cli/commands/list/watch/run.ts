import { AgentAuthError, isAgentAuthError } from "../../../../errors.js";
import { follow } from "../../../../http/deadline.js";
import type { ListFlags } from "../../../flags/list.js";
import type { ListKind } from "../../../listing/kinds.js";
import { writerOptions } from "../../../listing/print-list.js";
import { requireScope } from "../../../listing/scope.js";
import { COLUMNS, parseSort } from "../../../listing/source.js";
import { selectColumns } from "../../../output/columns.js";
import type { CommandContext } from "../../../runtime/context.js";
import { backoff } from "./backoff.js";
import { durationText } from "./duration.js";
import { eventsView } from "./events-view.js";
import { checkWatchFlags, type WatchedFlags, type WatchFormat, watchFormat } from "./options.js";
import { createPoll, type Poll, type View } from "./poll.js";
import { tableView } from "./table-view.js";
import { type Until, untilHolds } from "./until.js";

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
  const view = openView(kind, options, format, context);
  const end = follow(context.signal, options.watchTimeout, () => watchTimeoutError(options));
  try {
    const until = options.until === undefined ? undefined : await untilHolds(options.until);
    const watched = context.with({ io: view.io, signal: end.signal });
    const service = await watched.management();
    const poll = createPoll(service, { kind, options, scopeId, sorting }, watched);
    await watch({ options, view, until, poll }, watched);
  } catch (thrown) {
    // Ctrl-C ends a watch normally; the signal decides the exit code.
    if (!context.signal.aborted) throw thrown;
  } finally {
    end.release();
  }
  return undefined;
}

function openView(kind: ListKind, options: WatchedFlags, format: WatchFormat, { io, now }: CommandContext): View {
  const set = COLUMNS[kind.noun];
  // Reports an unknown column before the first poll.
  const columns = options.columns === undefined ? undefined : selectColumns(options.columns, set);
  if (format === "ndjson") {
    const paths = columns?.map(({ path }) => path);
    return eventsView(io, { paths, reveal: options.showSecrets === true, jq: options.jq, now });
  }
  const output = { ...set, ...writerOptions(options, { now }) };
  return tableView(io, { format, output, noun: kind.noun, every: durationText(options.watch), now });
}

interface Watching {
  options: WatchedFlags;
  view: View;
  until: Until | undefined;
  poll(): Promise<Poll>;
}

async function watch(
  { options, view, until, poll }: Watching,
  { io, signal, clock, now }: CommandContext,
): Promise<void> {
  let failures: number | undefined;
  for (;;) {
    let wait = options.watch;
    try {
      const result = await poll();
      if (failures) io.say("polling works again");
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
      if (failures === 1) io.warn(`the list cannot be read: ${error.message}; next attempt in ${durationText(wait)}`);
    }
    await clock.sleep(wait, signal);
  }
}

function watchTimeoutError({ until, watchTimeout = 0 }: WatchedFlags): AgentAuthError {
  const why = until === undefined ? "" : ", and --until does not hold";
  return new AgentAuthError("timeout", `--watch-timeout ${durationText(watchTimeout)} expired${why}`, {
    class: "unavailable",
    hint: "allow more time with --watch-timeout, or leave it out to watch without a limit",
  });
}
