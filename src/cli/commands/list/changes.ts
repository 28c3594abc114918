/** The changes between two polls of a list. */

import { isDeepStrictEqual } from "node:util";

/** A change of an item. */
export interface Change {
  type: "added" | "modified" | "removed";
  /** The item as JSON: its current state, or its last state if it was removed. */
  json: string;
}

/** An item of a poll, as events report it. */
export interface TrackedItem {
  id: string;
  json: string;
}

/** A poll, in the form for finding changes. */
export interface TrackedPoll {
  /** The items that match the filter. */
  items: readonly TrackedItem[];
  /** The items of the list that do not match. */
  others: readonly TrackedItem[];
  /** Whether the list did not change during the poll. */
  isWhole: boolean;
  /** Whether one response had the whole list. */
  isOnePage: boolean;
}

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
