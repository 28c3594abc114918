import type { DeviceContext, SandboxDevice, SandboxDomain, SandboxPool, SandboxSorting } from "./sample-device.js";
import { ID_LIMIT, makeDevice, mix, readId, writeId } from "./sample-device.js";

/** The fields that domains and pools can be sorted by. */
export const SUMMARY_FIELDS = ["id", "status", "title"] as const;

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
function positionIn<T>(order: readonly Summary[], item: T, compare: (one: Summary, other: T) => number): number {
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

/** An inserted id takes this part of the room between two ids, so that many can follow it on either side. */
const ID_SHARE = 256;

/** A device to insert, without its parents; the sandbox fills in the missing fields. */
export type DeviceDraft = Partial<Omit<SandboxDevice, "account_id" | "domain_id" | "pool_id" | "type">>;

export class PoolDevices extends SortedList<SandboxDevice> {
  readonly #context: DeviceContext;
  #made: number;

  constructor(context: DeviceContext, count: number) {
    const room = Math.floor(ID_LIMIT / Math.max(1, count));
    const idNumber = (n: number) => n * room + Math.floor((mix(context.seed, n) / 2 ** 32) * room);
    super(Array.from({ length: count }, (_, n) => makeDevice(context, writeId(context.idPrefix, idNumber(n)), n)));
    this.#context = context;
    this.#made = count;
  }

  /** The device at a position of an order; `undefined` beyond its end. */
  at(order: SandboxSorting, position: number): SandboxDevice | undefined {
    return structuredClone(this.slice(order, position, position + 1)[0]);
  }

  /** The device with an id; `undefined` where there is none. */
  find(id: string): SandboxDevice | undefined {
    return structuredClone(this.#find(id));
  }

  /** Adds a device, whose id must be new, and returns it complete. */
  insert(draft: DeviceDraft = {}): SandboxDevice {
    const { account_id, domain_id, pool_id, seed } = this.#context;
    const id = draft.id ?? this.#freeId(mix(seed, this.#made) * 2 ** 18, 1);
    if (id === undefined || this.#find(id)) throw new TypeError(`insertDevice: the pool already has a device ${id}`);
    const made = makeDevice(this.#context, id, this.#made++);
    const device: SandboxDevice = structuredClone({
      ...made,
      ...draft,
      account_id,
      domain_id,
      pool_id,
      type: "device",
    });
    this.add(device);
    return structuredClone(device);
  }

  /**
   * Adds a device at a position of an order, or at its end where the position is beyond it: it takes the neighbour's
   * value of the sorted field and an id next to the neighbour's. After thousands at the same place there is no id left
   * between two others, and it lands near the position.
   */
  insertAt(order: SandboxSorting, position: number): SandboxDevice {
    const before = this.at(order, position);
    const neighbour = before ?? this.at(order, this.count - 1);
    if (!neighbour) return this.insert();
    const isBelow = (before !== undefined) === (order.direction === "asc");
    const id = this.#idBeside(neighbour.id, isBelow ? -1 : 1);
    if (id === undefined) return this.insert();
    const { first_seen, last_seen, status, title } = neighbour;
    const shared: Record<string, DeviceDraft> = {
      last_seen: { first_seen, last_seen },
      status: { status },
      title: { title },
    };
    return this.insert({ id, ...shared[order.field] });
  }

  /** Changes a device and returns it; `undefined` where there is none. */
  update(id: string, changes: Omit<DeviceDraft, "id">): SandboxDevice | undefined {
    const device = this.#find(id);
    if (!device) return undefined;
    this.remove(device);
    this.add(structuredClone({ ...device, ...changes, id }));
    return this.find(id);
  }

  /** Removes a device; returns whether there was one. */
  delete(id: string): boolean {
    const device = this.#find(id);
    if (device) this.remove(device);
    return device !== undefined;
  }

  deleteAt(order: SandboxSorting, position: number, count: number): void {
    for (const device of this.slice(order, position, position + count)) this.delete(device.id);
  }

  #find(id: string): SandboxDevice | undefined {
    const device = this.order("id")[this.#position(id)];
    return device?.id === id ? device : undefined;
  }

  /** How many ids come before an id. */
  #position(id: string): number {
    return positionIn(this.order("id"), id, (device, other) => (device.id < other ? -1 : 1));
  }

  /** A free id just below or above another, with room left on both sides; `undefined` where there is none. */
  #idBeside(id: string, side: 1 | -1): string | undefined {
    const { idPrefix } = this.#context;
    const number = readId(idPrefix, id);
    if (number === undefined) return undefined;
    const next = this.order("id")[this.#position(id) + side];
    const limit = (next && readId(idPrefix, next.id)) ?? (side < 0 ? -1 : ID_LIMIT);
    return this.#freeId(number + side * Math.max(1, Math.floor(Math.abs(limit - number) / ID_SHARE)), side);
  }

  /** The first free id from a number on, upwards or downwards. */
  #freeId(number: number, side: 1 | -1): string | undefined {
    for (let free = number; free >= 0 && free < ID_LIMIT; free += side) {
      const id = writeId(this.#context.idPrefix, free);
      if (!this.#find(id)) return id;
    }
    return undefined;
  }
}
