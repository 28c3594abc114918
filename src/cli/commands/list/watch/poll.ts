/** Complete reads of a watched list. */

import type { ManagementClient } from "../../../../api/client.js";
import type { ListingSummary } from "../../../../api/page.js";
import { isUnusableItems } from "../../../../api/pages.js";
import { type AgentAuthError, isAgentAuthError, withHint } from "../../../../errors.js";
import type { Io } from "../../../io/io.js";
import { buildFilter } from "../../../listing/filters.js";
import type { ListItem, ListKind } from "../../../listing/kinds.js";
import { unusableHint } from "../../../listing/scope.js";
import { documentedValues, openListing, readOptions, type SortFlag, warnOfOrder } from "../../../listing/source.js";
import type { CommandContext } from "../../../runtime/context.js";
import type { WatchedFlags } from "./options.js";

/** The result of one poll. */
export interface Poll {
  /** The items that match the filter, in the service's order. */
  items: readonly ListItem[];
  /** The items that do not match. */
  others: readonly ListItem[];
  /** Number of items in the service's list, if the service reports it. */
  total: number | undefined;
  /** Whether the list did not change during the poll: only then a missing item is really gone. */
  isWhole: boolean;
  /** Whether one response had the whole list. */
  isOnePage: boolean;
  /** The error of a list with items that have no id: the items are all others. */
  failure: AgentAuthError | undefined;
}

/** Shows a watched list. */
export interface View {
  /** The `Io` for messages. */
  readonly io: Io;
  /** Shows the result of a poll. */
  show(poll: Poll): Promise<void>;
}

/** What is watched. */
export interface Watched {
  kind: ListKind;
  options: WatchedFlags;
  scopeId: string;
  sorting: SortFlag | undefined;
}

/**
 * A function that reads the list once. It throws the error of a failed page; the pages before it are dropped, since the
 * next poll starts again. The first poll shows progress, and warns of flags that the service or no item knows.
 */
export function createPoll(service: ManagementClient, watched: Watched, context: CommandContext): () => Promise<Poll> {
  const { kind, options, scopeId, sorting } = watched;
  const { io, signal, settings, now } = context;
  let isFirst = true;
  let hasWarned = false;
  return async () => {
    // `7d` is relative to the poll.
    const filter = buildFilter(options, now(), documentedValues(kind.noun));
    let summary: ListingSummary | undefined;
    const listing = openListing(service, kind, scopeId, sorting, {
      ...readOptions(options),
      maxItems: filter ? undefined : options.limit,
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
      if (!hasWarned) io.warn(thrown.message);
      hasWarned = true;
      failure = withHint(thrown, unusableHint(kind.noun, kind.scope, scopeId, settings()));
    } finally {
      progress?.stop();
    }
    if (isFirst && items.length === 0) for (const sentence of filter?.mistyped() ?? []) io.warn(sentence);
    isFirst = false;
    const { expected, complete, drift, duplicates } = summary ?? { complete: false, drift: [], duplicates: 0 };
    return {
      items: items.slice(0, options.limit),
      others,
      total: expected,
      // A duplicate has moved between two pages, and another item may have been missed there.
      isWhole: complete && drift.length === 0 && duplicates === 0,
      isOnePage: pages === 1,
      failure,
    };
  };
}
