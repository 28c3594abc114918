import type { ManagementClient } from "../../api/client.js";
import type { Drift, ListingSummary, Page, UnseenShifts } from "../../api/page.js";
import { missingText, unusableItems } from "../../api/pages.js";
import { AgentAuthError } from "../../errors.js";
import { quote, shellWord } from "../../redact.js";
import type { ListFlags } from "../flags/list.js";
import type { Io } from "../io/io.js";
import { escapeJson } from "../output/value.js";
import type { CommandContext } from "../runtime/context.js";
import type { Filter } from "./filters.js";
import type { ListItem, ListKind } from "./scope.js";
import { openListing, type SortFlag, warnOfOrder } from "./source.js";

/** An output that is not the whole: its error, the command that prints the rest, and the short form for an AI agent. */

/** The error of what was printed in part: another one ended it. @param resume the offset to continue at */
export function partialError(cause: AgentAuthError, message: string, hint: string, resume?: number): AgentAuthError {
  const { code, status, requestId, url, retryable } = cause;
  const partial = { class: "partial", hint, cause, resume, status, requestId, url, retryable } as const;
  return new AgentAuthError(code, `${message}: ${cause.message}`, partial);
}

/** The command line that continues a list where it stopped. */
export function resumeCommand(argv: readonly string[], offset: number, limit: number | undefined): string {
  const rest = withoutFlag(withoutFlag(argv, "--offset"), "--limit");
  const limited = limit === undefined ? [] : ["--limit", String(limit)];
  return ["agentauth", ...rest, "--offset", String(offset), ...limited].map(shellWord).join(" ");
}

function withoutFlag(argv: readonly string[], flag: string): string[] {
  const rest: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    if (word === flag) index++;
    else if (!word.startsWith(`${flag}=`)) rest.push(word);
  }
  return rest;
}

/** The number of items of the short form, which `--brief` asks for and an AI agent gets that names no form. */
export const BRIEF_ITEMS = 50;

/** What was left out of an output, as the line on stderr says it. */
export interface BriefNotice {
  /** The number of items that were printed. */
  shown: number;
  /** The number of items that there are, if it is known. */
  total?: number | undefined;
  /** The fields that were printed. */
  columns: string;
  /** What prints the items that follow; null if there are none. */
  next: { offset: number; command: string } | null;
  /** What prints more. */
  message: string;
}

/** Prints the notice as one line. An output that leaves items out says so with `--quiet` too: nothing else does. */
function sayBrief(io: Io, notice: BriefNotice): void {
  const loud = notice.next === null ? io : io.with({ quiet: false });
  loud.say(escapeJson(JSON.stringify(notice)));
}

/** How a list is read, and its summary: how much of it was printed, and how to continue. */

/** How far a list was read. */
export interface ListEnding {
  /** Items read. */
  yielded: number;
  /** Items printed. */
  matched: number;
  drift: Drift[];
  /** Undefined where the list was left before its end. */
  summary: ListingSummary | undefined;
  /** Where a filtered list was left once it had `--limit` items. */
  stoppedAt: Position | undefined;
}

/** A place in a list, in the service's own count. */
export interface Position {
  /** The offset of the first item that was not looked at. */
  offset: number;
  /** How many of the items from there on may have been shown already. */
  overlap: number;
}

/** A page of a list, and its items that are printed. */
export interface Selection {
  page: Page<ListItem>;
  items: readonly ListItem[];
  /** Where to continue: set when there were `room` of them and the list has more. */
  next: Position | undefined;
}

/** What is read. */
export interface ListRequest {
  kind: ListKind;
  scopeId: string;
  sort: SortFlag | undefined;
  filter: Filter | undefined;
  options: ListFlags;
}

/**
 * Opens a list, and shows progress while it is read. `end` is how far it was read so far.
 *
 * @throws `AgentAuthError` while it is read: see {@link selectMatching}
 */
export function readList(
  service: ManagementClient,
  { kind, scopeId, sort, filter, options }: ListRequest,
  { io, signal }: Pick<CommandContext, "io" | "signal">,
): { end: ListEnding; selections: AsyncIterable<Selection> } {
  const end: ListEnding = { yielded: 0, matched: 0, drift: [], summary: undefined, stoppedAt: undefined };
  const listing = openListing(service, kind, scopeId, options, {
    sort,
    limit: filter ? undefined : options.limit,
    signal,
    onDrift: (drift) => end.drift.push(drift),
    onSortingIgnored: warnOfOrder(io),
    onEnd: (summary) => {
      end.summary = summary;
    },
  });
  async function* read(): AsyncGenerator<Selection, void> {
    const progress = io.progress();
    const subject = `${kind.noun} of ${kind.scope} ${quote(scopeId)}`;
    try {
      for await (const selection of selectMatching(listing.pages(), subject, filter, options.limit)) {
        const { page, items, next } = selection;
        end.yielded += page.items.length;
        end.matched += items.length;
        end.stoppedAt = next;
        progress.update(`${kind.noun}: ${end.yielded} of ${page.pagination.item_count ?? "?"}`);
        yield selection;
      }
    } finally {
      progress.stop();
    }
  }
  return { end, selections: read() };
}

/**
 * Takes what matches from each page of a list, `limit` items at most.
 *
 * @throws `AgentAuthError` what the listing throws, also `unusable_items` where it is left at the limit
 */
export async function* selectMatching(
  pages: AsyncIterable<Page<ListItem>>,
  subject: string,
  filter: Filter | undefined,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<Selection, void> {
  let matched = 0;
  const unusable: number[] = [];
  for await (const page of pages) {
    const selection = selectFrom(page, filter, limit - matched);
    matched += selection.items.length;
    unusable.push(...page.unusable);
    yield selection;
    if (selection.next === undefined) continue;
    if (unusable.length === 0) return;
    throw unusableItems(subject, page.url, { count: unusable.length, positions: unusable }, selection.next.offset);
  }
}

function selectFrom(page: Page<ListItem>, filter: Filter | undefined, remaining: number): Selection {
  if (filter === undefined) return { page, items: page.items, next: undefined };
  const items: ListItem[] = [];
  let used = 0;
  for (const item of page.items) {
    if (items.length >= remaining) break;
    used++;
    if (filter.matches(item)) items.push(item);
  }
  const isLast = used === page.items.length && page.pagination.next_page_offset == null;
  if (items.length < remaining || isLast) return { page, items, next: undefined };
  // Items that the page repeated were dropped before they came here: how many of them lay before this place is unknown.
  return { page, items, next: { offset: page.offset + used, overlap: page.duplicates } };
}

/**
 * Reports on stderr how much of the list was printed, and what changed while it was read.
 *
 * @throws `AgentAuthError` `list_changed`, of class `partial`, where the list ended and items may be missing
 */
export function reportEnding(
  end: ListEnding,
  options: ListFlags,
  filter: Filter | undefined,
  { io, argv }: CommandContext,
  brief?: { columns: string; isJson: boolean },
): void {
  const { summary, yielded, matched } = end;
  // The verdict counts from where the list was begun.
  const from = options.offset ?? 0;
  const total = summary?.expected === undefined ? undefined : from + summary.expected;
  if (brief?.isJson) {
    const offset = filter ? end.stoppedAt?.offset : summary?.next;
    const next = offset === undefined ? null : { offset, command: resumeCommand(argv, offset, options.limit) };
    const message = "the short form, as with --brief; -o json prints everything, --limit or --columns what it names";
    sayBrief(io, { shown: matched, ...(!filter && { total }), columns: brief.columns, next, message });
    for (const remark of filter?.remarks(matched) ?? []) io.warn(remark);
    reportChanges(end, io);
    requireComplete(summary, options.sort);
    return;
  }
  // What --jq printed of them is its own.
  const shown = `${options.jq === undefined ? "shown" : "read"} ${from > 0 && yielded > 0 ? `${from + 1} to ${from + yielded}` : yielded}`;
  if (filter) {
    const which = end.stoppedAt === undefined ? `${matched} of ${yielded}` : `the first ${matched}`;
    const line = `${which} match (${filter.flags.join(", ")}: filtered here, after reading)`;
    io.say(`${line}${end.stoppedAt === undefined ? "" : howToContinue(end.stoppedAt, options, argv)}`);
    for (const remark of filter.remarks(matched)) io.warn(remark);
  } else if (summary?.next !== undefined) {
    io.say(`${shown} of ${total ?? "more"}; continue with: ${resumeCommand(argv, summary.next, options.limit)}`);
  } else {
    io.verbose(`${shown}${total === undefined ? "" : ` of ${total}`}`);
  }
  reportChanges(end, io);
  requireComplete(summary, options.sort);
}

function howToContinue({ offset, overlap }: Position, { limit }: ListFlags, argv: readonly string[]): string {
  const repeated = overlap > 0 ? `; the service listed ${overlap} items twice there, which may come again` : "";
  return `${repeated}; continue with: ${resumeCommand(argv, offset, limit)}`;
}

const UNSEEN: Readonly<Record<UnseenShifts, string>> = {
  aligned: "the service begins pages at offsets of its own",
  refused: "the service refuses offsets inside a page",
  page_size: "a page has a single item",
  gaps: "pages have fewer items than their offsets",
};

function reportChanges({ drift, summary }: ListEnding, io: CommandContext["io"]): void {
  if (summary && summary.duplicates > 0 && drift.length === 0)
    io.warn(`the service listed ${summary.duplicates} items twice; each is shown once`);
  if (summary?.unseenShifts !== undefined)
    io.say(`items that moved between two pages cannot be seen: ${UNSEEN[summary.unseenShifts]}`);
  const change = drift.findLast(({ field }) => field !== "position") ?? drift.at(-1);
  if (change === undefined) return;
  const first = drift.find(({ field }) => field === change.field) ?? change;
  const numbers = change.field === "position" ? "items moved" : `${change.field} was ${first.from}, then ${change.to}`;
  io.warn(`the list changed while it was read (${numbers})`);
}

/** @throws `AgentAuthError` `list_changed`, of class `partial`, where the list ended and items may be missing */
export function requireComplete(summary: ListingSummary | undefined, sort: string | undefined): void {
  if (summary === undefined || summary.missing === 0) return;
  const isById = sort?.split(":")[0] === "id";
  const hint = isById ? "list again" : "list again; with --sort id no item moves while the list is read";
  const remedy = { action: "retry" } as const;
  throw new AgentAuthError("list_changed", missingText(summary), { class: "partial", retryable: true, hint, remedy });
}
