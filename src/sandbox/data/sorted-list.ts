import type { SandboxDevice, SandboxDomain, SandboxPool, SandboxSorting } from "./wire-types.js";

/** The fields that domains and pools can be sorted by. */
export const SUMMARY_FIELDS = ["id", "status", "title"] as const;

/** The fields that devices can be sorted by. */
export const DEVICE_FIELDS = ["id", "last_seen", "status", "title"] as const;

/** An object of a list. */
export type Summary = SandboxPool | SandboxDomain | SandboxDevice;

/** Objects in every order that the service offers: each order is sorted on first use, then kept up to date. */
export class SortedList<T extends Summary> {
  readonly #orders = new Map<string, T[]>();

  constructor(items: readonly T[]) {
    this.#orders.set("id", items.toSorted(compareBy("id")));
  }

  /** How many objects there are. */
  get count(): number {
    return this.order("id").length;
  }

  /** Copies of the objects from one position of an order up to another; their nested objects are shared. */
  slice({ field, direction }: SandboxSorting, start: number, end: number): T[] {
    const order = this.order(field);
    const fromEnd = (position: number) => Math.max(0, order.length - position);
    const found = direction === "asc" ? order.slice(start, end) : order.slice(fromEnd(end), fromEnd(start)).reverse();
    return found.map((item) => ({ ...item }));
  }

  /** All objects in ascending order of a field. */
  protected order(field: string): T[] {
    const order = this.#orders.get(field) ?? this.order("id").toSorted(compareBy(field));
    this.#orders.set(field, order);
    return order;
  }

  /** Adds an object to every order. */
  protected add(item: T): void {
    for (const [field, order] of this.#orders) order.splice(positionIn(order, item, compareBy(field)), 0, item);
  }

  /** Removes an object from every order. */
  protected remove(item: T): void {
    for (const [field, order] of this.#orders) order.splice(positionIn(order, item, compareBy(field)), 1);
  }
}

/** How many objects of an order come before an object, by binary search. */
export function positionIn<T>(order: readonly Summary[], item: T, compare: (one: Summary, other: T) => number): number {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(order[middle] as Summary, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Compares by a field, ties by id. */
function compareBy(field: string): (one: Summary, other: Summary) => number {
  const value = (item: Summary) =>
    field === "last_seen" ? (item as SandboxDevice).last_seen.at : item[field as (typeof SUMMARY_FIELDS)[number]];
  return (one, other) => {
    const [a, b] = [value(one), value(other)];
    return a < b ? -1 : a > b ? 1 : one.id < other.id ? -1 : 1;
  };
}
