/** A watched list as a table that is redrawn in place, or its changes as events. */

import { isDeepStrictEqual } from "node:util";
import type { AgentAuthError } from "../../../errors.js";
import type { ListFlags } from "../../flags/list.js";
import type { Io } from "../../io/io.js";
import { cutText } from "../../io/width.js";
import type { ListItem } from "../../listing/scope.js";
import { jqFilter, printResults } from "../../output/jq.js";
import { stringifyItems } from "../../output/safe-json.js";
import { createWriter, type OutputOptions } from "../../output/writer.js";

/** The result of one poll. */
export interface Poll<Item = ListItem> {
  /** The items that match the filter, in the service's order. */
  items: readonly Item[];
  /** The items that do not match. */
  others: readonly Item[];
  /** Number of items in the service's list, if the service reports it. */
  total: number | undefined;
  /** Whether the list did not change during the poll: only then a missing item is really gone. */
  isWhole: boolean;
  /** Whether one response had the whole list. */
  isOnePage: boolean;
  /** The error of a list with items that have no id: the items are all others. */
  failure: AgentAuthError | undefined;
}

/** What shows a watched list, and the messages about it. */
export interface View extends Pick<Io, "say" | "warn"> {
  show(poll: Poll): Promise<void>;
}

/**
 * Prints `{"type":"added","object":{…},"time":"…"}` for every item of the first poll, then the changes. The time is that
 * of the poll, RFC 3339 in UTC.
 *
 * @param paths the fields of `--columns`: events contain only these, and report only their changes
 */
export function eventsView(
  { jq, showSecrets = false }: ListFlags,
  paths: readonly string[] | undefined,
  io: Io,
  now: () => number,
): View {
  const changesOf = createTracker();
  const filter = jq === undefined ? undefined : jqFilter(jq);
  const tracked = (items: readonly ListItem[]) =>
    items.map((item) => ({ id: item.id ?? "", json: stringifyItems([item], "", { reveal: showSecrets, paths }) }));
  return {
    say: io.say,
    warn: io.warn,
    async show(poll) {
      const time = new Date(now()).toISOString();
      const changes = changesOf({ ...poll, items: tracked(poll.items), others: tracked(poll.others) });
      const lines = changes.map(({ type, json }) => `{"type":"${type}","object":${json},"time":"${time}"}\n`);
      if (lines.length === 0) return;
      if (filter) await printResults(await filter(lines.join("")), io);
      else await io.stdout.write(lines.join(""));
    },
  };
}

const ESC = "\u001b[";
// Synchronized output, hidden cursor, no line wrap. Each drawing restores all three, so that an exit at any time leaves
// the terminal as it was.
const BEGIN = `${ESC}?2026h${ESC}?25l${ESC}?7l`;
const END = `${ESC}?7h${ESC}?25h${ESC}?2026l`;

/** Draws as many rows as fit on the screen, and a status line, over the last ones; below a message if there was one. */
export function tableView(
  statusOf: (poll: Poll, isCut: boolean) => string,
  { format, output }: { format: "table" | "wide"; output: OutputOptions },
  io: Io,
): View {
  const { stdout, env, settings } = io;
  // The log of requests would be drawn over.
  const isInPlace = env["TERM"] !== "dumb" && settings.verbose !== true;
  /** The lines above the cursor that the next table replaces, and the width that they were drawn for. */
  let drawn = { height: 0, columns: 0 };
  const leaving = (print: (text: string) => void) => (text: string) => {
    drawn = { height: 0, columns: 0 };
    print(text);
  };
  return {
    say: leaving(io.say),
    warn: leaving(io.warn),
    async show(poll) {
      const { rows, columns, colors } = stdout;
      // Rows outside the screen need not be measured.
      const table = await tableLines(poll.items.slice(0, rows), format, output, io);
      // One line for the cursor, one for the status.
      const room = Math.max(1, rows - 2);
      const status = colors.dim(cutText(statusOf(poll, table.length > room), columns));
      const lines = [...table.slice(0, room), status];
      if (!isInPlace) return stdout.write(`${lines.join("\n")}\n\n`);
      // After a change of width, the terminal may have wrapped the lines again.
      const up = drawn.height > 0 && drawn.columns === columns ? `${ESC}${drawn.height}A` : "";
      drawn = { height: lines.length, columns };
      await stdout.write(`${BEGIN}\r${up}${lines.map((line) => `${ESC}2K${line}\n`).join("")}${ESC}J${END}`);
    },
  };
}

async function tableLines(items: readonly ListItem[], format: "table" | "wide", output: OutputOptions, io: Io) {
  const { rows, columns, colors } = io.stdout;
  let text = "";
  const write = async (part: string | Uint8Array) => {
    text += String(part);
  };
  // Messages about the table, such as about cut cells, do not fit a table that is redrawn. A copy would open stdin.
  const captured = { say() {}, stdout: { isTTY: true, columns, rows, colors, write } };
  const writer = createWriter(format, output, Object.assign(Object.create(io) as Io, captured));
  await writer.write(items);
  await writer.end();
  return text.split("\n").slice(0, -1);
}

/** How many items there are, and how many of them match. */
export function shownCountText({ items, others, total }: Poll, noun: string, isCut: boolean): string {
  const all = total ?? items.length + others.length;
  const count = items.length === all ? `${all} ${noun}` : `${items.length} of ${all} ${noun}`;
  return `${count}${isCut ? " (more than fit on the screen)" : ""}`;
}

/** A change of an item. */
interface Change {
  type: "added" | "modified" | "removed";
  /** The item as JSON: its current state, or its last state if it was removed. */
  json: string;
}

/** An item of a poll, as events report it. */
interface TrackedItem {
  id: string;
  json: string;
}

/** A poll, in the form for finding changes. */
export type TrackedPoll = Pick<Poll<TrackedItem>, "items" | "others" | "isWhole" | "isOnePage">;

/**
 * Remembers each poll, and returns the changes in the next one.
 *
 * A missing item was removed if the poll is whole. If the poll took several responses, items may have moved between them
 * unseen, so the item must also be missing in the next whole poll.
 */
export function createTracker(): (poll: TrackedPoll) => Change[] {
  const known = new Map<string, string>();
  let missed = new Set<string>();
  return (poll) => {
    const present = new Set<string>();
    const changes: Change[] = [];
    for (const { id, json } of poll.items) {
      if (present.has(id)) continue;
      present.add(id);
      const before = known.get(id);
      known.set(id, json);
      if (before === undefined) changes.push({ type: "added", json });
      else if (!isSame(before, json)) changes.push({ type: "modified", json });
    }
    for (const { id, json } of poll.others) {
      if (!present.has(id) && known.delete(id)) changes.push({ type: "removed", json });
    }
    const absent = [...known.keys()].filter((id) => !present.has(id));
    if (!poll.isWhole) {
      missed = new Set(absent.filter((id) => missed.has(id)));
      return changes;
    }
    for (const id of absent) {
      if (!poll.isOnePage && !missed.has(id)) continue;
      changes.push({ type: "removed", json: known.get(id) ?? "null" });
      known.delete(id);
    }
    missed = new Set(absent.filter((id) => known.has(id)));
    return changes;
  };
}

/** A service may write the same properties in another order. */
function isSame(before: string, after: string): boolean {
  return before === after || isDeepStrictEqual(JSON.parse(before), JSON.parse(after));
}
