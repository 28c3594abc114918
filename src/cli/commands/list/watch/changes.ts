/** What is different between two readings of a list. */

import { isDeepStrictEqual } from "node:util";

/** What happened to an item. */
export interface Change {
  type: "added" | "modified" | "removed";
  /** The item as JSON: as it is, or, where it is gone, as it was. */
  json: string;
}

/** An item of a reading, as it is told. */
export interface Told {
  id: string;
  json: string;
}

/** A reading, in the form in which changes are found. */
export interface Reading {
  /** The items that belong to what is watched. */
  items: readonly Told[];
  /** Items that are in the list, and do not belong. */
  others: readonly Told[];
  /** See `Round`. */
  isWhole: boolean;
  /** See `Round`. */
  isOnePage: boolean;
}

/**
 * Remembers each reading, and gives what is different in the next one.
 *
 * An item that is not there is gone when the reading is whole. Where it took several answers, items may have moved
 * between them unseen, so that the next whole reading must miss it too.
 */
export function createTracker(): (reading: Reading) => Change[] {
  const known = new Map<string, string>();
  let missed = new Set<string>();
  return (reading) => {
    const present = new Set<string>();
    const changes: Change[] = [];
    for (const { id, json } of reading.items) {
      if (present.has(id)) continue;
      present.add(id);
      const before = known.get(id);
      known.set(id, json);
      if (before === undefined) changes.push({ type: "added", json });
      else if (!isSame(before, json)) changes.push({ type: "modified", json });
    }
    for (const { id, json } of reading.others) {
      if (!present.has(id) && known.delete(id)) changes.push({ type: "removed", json });
    }
    const absent = [...known.keys()].filter((id) => !present.has(id));
    if (!reading.isWhole) {
      missed = new Set(absent.filter((id) => missed.has(id)));
      return changes;
    }
    for (const id of absent) {
      if (!reading.isOnePage && !missed.has(id)) continue;
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
