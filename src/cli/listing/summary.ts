/** The summary of a list: how much of it was printed, and how to continue. */

import type { Drift, ListingSummary, Page } from "../../api/page.js";
import type { Device } from "../../api/types.js";
import type { ListFlags } from "../flags/list.js";
import type { CommandContext } from "../runtime/context.js";
import { sayBrief } from "./brief.js";
import type { Filter } from "./filters.js";
import { resumeCommand } from "./resume-command.js";

/** How far a list was read. */
export interface ListEnding {
  /** Items read. */
  yielded: number;
  /** Items printed. */
  matched: number;
  drift: Drift[];
  /** Undefined where the list was left before its end. */
  verdict: ListingSummary | undefined;
  /** Where a filtered list was left once it had `--limit` items. */
  left: Position | undefined;
}

/** A place in a list, in the service's own count. */
export interface Position {
  /** The offset of the first item that was not looked at. */
  offset: number;
  /** How many of the items from there on may have been shown already. */
  again: number;
}

/** The items of a page that are printed. */
export interface Selection {
  items: readonly Device[];
  /** Where to continue: set when there were `room` of them and the list has more. */
  next: Position | undefined;
}

/** Takes what matches from a page, `room` items at the most. */
export function selectMatching(page: Page<Device>, filter: Filter | undefined, room: number): Selection {
  if (filter === undefined) return { items: page.items, next: undefined };
  const items: Device[] = [];
  let used = 0;
  for (const item of page.items) {
    if (items.length >= room) break;
    used++;
    if (filter.matches(item)) items.push(item);
  }
  const isLast = used === page.items.length && page.pagination.next_page_offset == null;
  if (items.length < room || isLast) return { items, next: undefined };
  // Items that the page repeated were dropped before they came here: how many of them lay before this place is unknown.
  return { items, next: { offset: page.offset + used, again: page.duplicates } };
}

/** Reports on stderr how much of the list was printed, and what changed while it was read. */
export function reportEnding(
  end: ListEnding,
  options: ListFlags,
  filter: Filter | undefined,
  { io, argv }: CommandContext,
): void {
  const { verdict, yielded, matched } = end;
  // The verdict counts from where the list was begun.
  const from = options.offset ?? 0;
  const total = verdict?.expected === undefined ? undefined : from + verdict.expected;
  if (options.brief) {
    const offset = filter ? end.left?.offset : verdict?.next;
    const next = offset === undefined ? null : { offset, command: resumeCommand(argv, offset, undefined) };
    const message = "for an AI agent; --limit or --columns prints what it says, -o ndjson everything";
    const notice = { shown: matched, ...(!filter && { total }), columns: options.columns ?? "", next, message };
    sayBrief(io, notice);
    if (filter && matched === 0) for (const sentence of filter.mistyped()) io.warn(sentence);
    reportChanges(end, io);
    return;
  }
  const shown = `shown ${from > 0 && yielded > 0 ? `${from + 1} to ${from + yielded}` : yielded}`;
  if (filter) {
    const which = end.left === undefined ? `${matched} of ${yielded}` : `the first ${matched}`;
    const summary = `${which} match (${filter.flags.join(", ")}: filtered here, after reading)`;
    io.say(`${summary}${end.left === undefined ? "" : howToContinue(end.left, options, argv)}`);
    if (matched === 0) for (const sentence of filter.mistyped()) io.warn(sentence);
  } else if (verdict?.next !== undefined) {
    io.say(`${shown} of ${total ?? "more"}; continue with: ${resumeCommand(argv, verdict.next, options.limit)}`);
  } else {
    io.verbose(`${shown}${total === undefined ? "" : ` of ${total}`}`);
  }
  reportChanges(end, io);
}

function howToContinue({ offset, again }: Position, { limit }: ListFlags, argv: readonly string[]): string {
  const repeated = again > 0 ? `; the service listed ${again} items twice there, which may come again` : "";
  return `${repeated}; continue with: ${resumeCommand(argv, offset, limit)}`;
}

function reportChanges({ drift, verdict }: ListEnding, io: CommandContext["io"]): void {
  if (verdict && verdict.duplicates > 0 && drift.length === 0) {
    io.warn(`the service listed ${verdict.duplicates} items twice; each is shown once`);
  }
  const change = drift.at(-1);
  if (change) {
    const first = drift.find(({ field }) => field === change.field) ?? change;
    const missing =
      verdict?.complete === false && verdict.next === undefined ? "; items added in between may be missing" : "";
    io.warn(`the list changed while it was read (${change.field} was ${first.from}, then ${change.to})${missing}`);
  }
}
