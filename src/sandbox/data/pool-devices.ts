import type { Device, Direction } from "../wire-types.js";
import { type DeviceContext, makeDevice } from "./device.js";
import { ID_LIMIT, readId, writeId } from "./ids.js";
import { mix } from "./random.js";

/** The fields that devices can be sorted by. */
export const DEVICE_FIELDS = ["id", "last_seen", "status", "title"] as const;

/** A field that devices can be sorted by. */
export type DeviceField = (typeof DEVICE_FIELDS)[number];

/** An inserted id takes this part of the room between two ids, so that many can follow it on either side. */
const ID_SHARE = 256;

/** An order of devices: descending is the exact reverse of ascending. */
export interface DeviceOrder {
  field: DeviceField;
  direction: Direction;
}

/** A device to insert, without its parents; the sandbox fills in the missing fields. */
export type DeviceDraft = Partial<Omit<Device, "account_id" | "domain_id" | "pool_id" | "type">>;

/** The devices of one pool. */
export class PoolDevices {
  readonly #context: DeviceContext;
  readonly #idPrefix: string;
  readonly #byId = new Map<string, Device>();
  /** All devices in ascending order of a field, ties by id: sorted once, then kept up to date. */
  readonly #sorted = new Map<DeviceField, Device[]>();
  #made = 0;

  constructor(context: DeviceContext, idPrefix: string, count: number) {
    this.#context = context;
    this.#idPrefix = idPrefix;
    const room = Math.floor(ID_LIMIT / Math.max(1, count));
    const devices = Array.from({ length: count }, (_, n) =>
      this.#make(n * room + Math.floor((mix(context.seed, n) / 2 ** 32) * room)),
    );
    for (const device of devices) this.#byId.set(device.id, device);
    this.#sorted.set("id", devices);
  }

  /** How many devices the pool has. */
  get count(): number {
    return this.#byId.size;
  }

  /** Copies of the devices from one position of an order up to another; their nested objects are shared. */
  slice({ field, direction }: DeviceOrder, start: number, end: number): Device[] {
    const order = this.#order(field);
    const { length } = order;
    const found =
      direction === "asc"
        ? order.slice(start, end)
        : order.slice(Math.max(0, length - end), Math.max(0, length - start)).reverse();
    return found.map((device) => ({ ...device }));
  }

  /** The device at a position of an order; `undefined` beyond its end. */
  at(order: DeviceOrder, position: number): Device | undefined {
    return structuredClone(this.slice(order, position, position + 1)[0]);
  }

  /** The device with an id; `undefined` where there is none. */
  find(id: string): Device | undefined {
    return structuredClone(this.#byId.get(id));
  }

  /**
   * Adds a device; its id must be new.
   *
   * @returns the complete device
   */
  insert(draft: DeviceDraft = {}): Device {
    const { account_id, domain_id, pool_id, seed } = this.#context;
    let number = mix(seed, this.#made) * 2 ** 18;
    while (this.#byId.has(writeId(this.#idPrefix, number))) number += 1;
    const made = this.#make(number);
    const device: Device = structuredClone({ ...made, ...draft, account_id, domain_id, pool_id, type: "device" });
    if (this.#byId.has(device.id)) throw new TypeError(`insertDevice: the pool already has a device ${device.id}`);
    this.#add(device);
    return structuredClone(device);
  }

  /**
   * Adds a device at a position of an order, or at its end where the position is beyond it: it takes the neighbour's
   * value of the sorted field and an id next to the neighbour's. After thousands at the same place there is no id left
   * between two others, and it lands near the position.
   */
  insertAt(order: DeviceOrder, position: number): Device {
    const before = this.at(order, position);
    const neighbour = before ?? this.at(order, this.count - 1);
    if (!neighbour) return this.insert();
    const isBelow = (before !== undefined) === (order.direction === "asc");
    const id = this.#idBeside(neighbour, isBelow ? -1 : 1);
    if (id === undefined) return this.insert();
    if (order.field === "id") return this.insert({ id });
    const { last_seen, first_seen } = neighbour;
    return this.insert(
      order.field === "last_seen" ? { id, last_seen, first_seen } : { id, [order.field]: neighbour[order.field] },
    );
  }

  /** Changes a device and returns it; `undefined` where there is none. */
  update(id: string, changes: Omit<DeviceDraft, "id">): Device | undefined {
    const device = this.#byId.get(id);
    if (!device) return undefined;
    this.#remove(device);
    this.#add(structuredClone({ ...device, ...changes, id }));
    return this.find(id);
  }

  /** Removes a device; returns whether there was one. */
  delete(id: string): boolean {
    const device = this.#byId.get(id);
    if (device) this.#remove(device);
    return device !== undefined;
  }

  /** Removes up to `count` devices from a position of an order on. */
  deleteAt(order: DeviceOrder, position: number, count: number): void {
    for (const device of this.slice(order, position, position + count)) this.delete(device.id);
  }

  #make(idNumber: number): Device {
    return makeDevice(this.#context, writeId(this.#idPrefix, idNumber), this.#made++);
  }

  #order(field: DeviceField): Device[] {
    // The sort is stable: devices with equal values stay in the order of their ids.
    const order = this.#sorted.get(field) ?? this.#order("id").toSorted((a, b) => compare(a, b, field));
    this.#sorted.set(field, order);
    return order;
  }

  #add(device: Device): void {
    this.#byId.set(device.id, device);
    for (const [field, order] of this.#sorted) order.splice(positionOf(order, device, field), 0, device);
  }

  #remove(device: Device): void {
    this.#byId.delete(device.id);
    for (const [field, order] of this.#sorted) order.splice(positionOf(order, device, field), 1);
  }

  /** A free id just below or above another, with room left on both sides; `undefined` where there is none. */
  #idBeside(device: Device, side: 1 | -1): string | undefined {
    const order = this.#order("id");
    const number = readId(this.#idPrefix, device.id);
    if (number === undefined) return undefined;
    const next = order[positionOf(order, device, "id") + side];
    const limit = (next && readId(this.#idPrefix, next.id)) ?? (side < 0 ? -1 : ID_LIMIT);
    const step = side * Math.max(1, Math.floor(Math.abs(limit - number) / ID_SHARE));
    for (let free = number + step; free >= 0 && free < ID_LIMIT; free += side) {
      const id = writeId(this.#idPrefix, free);
      if (!this.#byId.has(id)) return id;
    }
    return undefined;
  }
}

/** How many devices of an order come before a device, by binary search. */
function positionOf(order: readonly Device[], device: Device, field: DeviceField): number {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = order[middle] ?? device;
    if ((compare(other, device, field) || compare(other, device, "id")) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compare(one: Device, other: Device, field: DeviceField): number {
  const a = field === "last_seen" ? one.last_seen.at : one[field];
  const b = field === "last_seen" ? other.last_seen.at : other[field];
  return a < b ? -1 : a > b ? 1 : 0;
}
