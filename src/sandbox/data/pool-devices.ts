import type { Device, Direction } from "../wire-types.js";
import { type DeviceContext, makeDevice, outlineOf } from "./device.js";
import type { Ids } from "./ids.js";
import { SCRAMBLE_SPACE } from "./random.js";

/** The fields that devices can be sorted by. */
export const DEVICE_FIELDS = ["id", "last_seen", "status", "title"] as const;

/** A field that devices can be sorted by. */
export type DeviceField = (typeof DEVICE_FIELDS)[number];

/** Of the room between two ids, an inserted one takes this part, so that many can follow it on either side. */
const ID_SHARE = 256;

/** An order of devices: descending is the exact reverse of ascending. */
export interface DeviceOrder {
  field: DeviceField;
  direction: Direction;
}

/** Everything about a device but where it belongs; the sandbox fills in what is left out. */
export type DeviceDraft = Partial<Omit<Device, "account_id" | "domain_id" | "pool_id" | "type">>;

/**
 * The devices of one pool. A device is made from its index whenever it is needed; only the indexes in the orders that
 * were asked for, and the devices that were inserted or changed, take memory.
 */
export class PoolDevices {
  readonly #context: DeviceContext;
  readonly #ids: Ids;
  readonly #generated: number;
  /** The devices that are not as generated, by index; `undefined` for a deleted one. */
  readonly #changed = new Map<number, Device | undefined>();
  /** The indexes of inserted devices by id. */
  readonly #inserted = new Map<string, number>();
  /** All indexes in ascending order of a field: sorted once, then kept up to date. */
  readonly #orders = new Map<DeviceField, number[]>();
  #nextIndex: number;
  #count: number;

  constructor(context: DeviceContext, ids: Ids, generated: number) {
    this.#context = context;
    this.#ids = ids;
    this.#generated = generated;
    this.#nextIndex = generated;
    this.#count = generated;
  }

  /** How many devices the pool has. */
  get count(): number {
    return this.#count;
  }

  /** The devices from one position of an order up to another. */
  slice(order: DeviceOrder, start: number, end: number): Device[] {
    return this.#indexes(order, start, end).map((index) => this.#device(index));
  }

  /** The device at a position of an order; `undefined` beyond its end. */
  at(order: DeviceOrder, position: number): Device | undefined {
    return this.slice(order, position, position + 1)[0];
  }

  /** The device of an id; `undefined` where there is none. */
  find(id: string): Device | undefined {
    const index = this.#indexOf(id);
    return index === undefined ? undefined : this.#device(index);
  }

  /**
   * Adds a device; its id has to be new.
   *
   * @returns the device, with what the draft left out filled in
   */
  insert(draft: DeviceDraft = {}): Device {
    const { account_id, domain_id, pool_id } = this.#context;
    const index = this.#nextIndex;
    const device: Device = { ...this.#make(index), ...draft, account_id, domain_id, pool_id, type: "device" };
    if (this.#indexOf(device.id) !== undefined) {
      throw new TypeError(`insertDevice: the pool already has a device ${device.id}`);
    }
    this.#nextIndex += 1;
    this.#count += 1;
    this.#inserted.set(device.id, index);
    this.#put(index, structuredClone(device));
    return device;
  }

  /**
   * Adds a device at a position of an order, or at its end where the position is beyond it: it takes the neighbour's
   * value of the sorted field and an id next to the neighbour's. After thousands at the same place there is no id left
   * between two others, and it lands near the position.
   */
  insertAt(order: DeviceOrder, position: number): Device {
    const before = this.at(order, position);
    const neighbour = before ?? this.at(order, this.count - 1);
    const key = neighbour && this.#ids.toKey(neighbour.id);
    if (!neighbour || key === undefined) return this.insert();
    const isBelow = (before !== undefined) === (order.direction === "asc");
    const id = this.#freeId(neighbour.id, key, isBelow ? -1 : 1);
    if (order.field === "id") return this.insert({ id });
    const { last_seen, first_seen } = neighbour;
    return this.insert(
      order.field === "last_seen" ? { id, last_seen, first_seen } : { id, [order.field]: neighbour[order.field] },
    );
  }

  /** Changes a device and returns it; `undefined` where there is none. */
  update(id: string, changes: Omit<DeviceDraft, "id">): Device | undefined {
    const index = this.#indexOf(id);
    if (index === undefined) return undefined;
    const device = structuredClone({ ...this.#device(index), ...changes, id });
    this.#takeOut(index);
    this.#put(index, device);
    return structuredClone(device);
  }

  /** Removes a device; whether it was there. */
  delete(id: string): boolean {
    const index = this.#indexOf(id);
    if (index === undefined) return false;
    this.#takeOut(index);
    this.#changed.set(index, undefined);
    this.#inserted.delete(id);
    this.#count -= 1;
    return true;
  }

  /** Removes the devices from a position of an order on, as many as there are. */
  deleteAt(order: DeviceOrder, position: number, count: number): void {
    for (const { id } of this.slice(order, position, position + count)) this.delete(id);
  }

  #make(index: number): Device {
    return makeDevice(this.#context, this.#ids.of(index), index);
  }

  #device(index: number): Device {
    const changed = this.#changed.get(index);
    return changed ? structuredClone(changed) : this.#make(index);
  }

  #indexOf(id: string): number | undefined {
    const index = this.#inserted.get(id) ?? this.#ids.ordinal(id) ?? this.#generated;
    if (index >= this.#generated) return this.#inserted.get(id);
    return this.#isDeleted(index) ? undefined : index;
  }

  #isDeleted(index: number): boolean {
    return this.#changed.has(index) && this.#changed.get(index) === undefined;
  }

  #indexes({ field, direction }: DeviceOrder, start: number, end: number): number[] {
    const order = this.#order(field);
    if (direction === "asc") return order.slice(start, end);
    return order.slice(Math.max(0, order.length - end), Math.max(0, order.length - start)).reverse();
  }

  #order(field: DeviceField): number[] {
    const order = this.#orders.get(field) ?? this.#sort(field);
    this.#orders.set(field, order);
    return order;
  }

  /** The sort is stable: with equal values, devices stay in the order of their ids. */
  #sort(field: DeviceField): number[] {
    const all = () => Array.from({ length: this.#nextIndex }, (_, index) => index);
    const indexes = field === "id" ? all().filter((index) => !this.#isDeleted(index)) : [...this.#order("id")];
    const values = new Array<string | number>(this.#nextIndex);
    for (const index of indexes) values[index] = this.#sortValueAt(index, field);
    return indexes.sort((a, b) => compare(values[a] ?? "", values[b] ?? ""));
  }

  #sortValueAt(index: number, field: DeviceField): string | number {
    const changed = this.#changed.get(index);
    if (changed) return sortValue(changed, field);
    if (field === "id") return this.#ids.of(index);
    const { lastSeenAt, ...outline } = outlineOf(this.#context, index);
    return field === "last_seen" ? lastSeenAt : outline[field];
  }

  #put(index: number, device: Device): void {
    this.#changed.set(index, device);
    for (const [field, order] of this.#orders) order.splice(this.#position(order, device, field), 0, index);
  }

  #takeOut(index: number): void {
    for (const order of this.#orders.values()) order.splice(order.indexOf(index), 1);
  }

  /** How many devices of an order come before a device, found by halving. */
  #position(order: readonly number[], device: Device, field: DeviceField): number {
    let [low, high] = [0, order.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#device(order[middle] ?? 0);
      const isBefore = (compare(sortValue(other, field), sortValue(device, field)) || compare(other.id, device.id)) < 0;
      if (isBefore) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** An id just below or above another, with nothing between them, and with room left on both sides. */
  #freeId(id: string, key: number, side: 1 | -1): string {
    const order = this.#order("id");
    const next = order[order.indexOf(this.#indexOf(id) ?? -1) + side];
    const nextKey = next === undefined ? undefined : this.#ids.toKey(this.#device(next).id);
    const gap = Math.abs((nextKey ?? (side < 0 ? -1 : SCRAMBLE_SPACE)) - key);
    const step = side * Math.max(1, Math.floor(gap / ID_SHARE));
    for (let free = key + step; free >= 0 && free < SCRAMBLE_SPACE; free += side) {
      if (this.#indexOf(this.#ids.fromKey(free)) === undefined) return this.#ids.fromKey(free);
    }
    return this.#ids.of(this.#nextIndex);
  }
}

function sortValue(device: Device, field: DeviceField): string | number {
  return field === "last_seen" ? device.last_seen.at : device[field];
}

function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
