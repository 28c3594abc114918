import { type Insertion, lowerBound, type OrderCache, orderByKey, orderByRank, overlay } from "../order.js";
import type { Device, Direction } from "../types.js";
import { type DeviceContext, deviceOf, deviceText, rankOf } from "./device.js";
import type { DeviceIds } from "./ids.js";
import { SCRAMBLE_SPACE } from "./random.js";
import { fromWire, toWire } from "./wire.js";

/** The fields that devices can be sorted by. */
export const DEVICE_FIELDS = ["id", "last_seen", "status", "title"] as const;

/** A field that devices can be sorted by. */
export type DeviceField = (typeof DEVICE_FIELDS)[number];

interface Inserted {
  device: Device;
  /** How many generated devices stand before it in an order, deleted ones included: worked out once. */
  before: { [F in DeviceField]?: number };
}

/** Of the room between two ids, an inserted one takes this part, so that many can follow it on either side. */
const ID_SHARE = 256;

/** An order of devices: descending is the exact reverse of ascending. */
export interface DeviceOrder {
  field: DeviceField;
  direction: Direction;
}

/** Everything about a device but where it belongs; what is left out is made up. */
export type DeviceDraft = Partial<Omit<Device, "account_id" | "domain_id" | "pool_id" | "type">>;

/**
 * The devices of one pool: generated ones, which are never held, and over them the few that were inserted or deleted.
 *
 * In an order, a number from 0 on is the index of a generated device, and `-1 - i` the i-th inserted one.
 */
export class PoolDevices {
  readonly #context: DeviceContext;
  readonly #ids: DeviceIds;
  readonly #generated: number;
  readonly #orders: OrderCache;
  readonly #deleted = new Set<number>();
  #inserted: Inserted[] = [];
  #spare: number;
  #version = 0;

  constructor(context: DeviceContext, ids: DeviceIds, generated: number, orders: OrderCache) {
    this.#context = context;
    this.#ids = ids;
    this.#generated = generated;
    this.#orders = orders;
    this.#spare = generated;
  }

  /** How many devices the pool has. */
  get count(): number {
    return this.#generated - this.#deleted.size + this.#inserted.length;
  }

  /** The JSON texts of a stretch of the list, as {@link toWire} makes them. */
  texts(order: DeviceOrder, start: number, end: number): string[] {
    const codes = this.#order(order.field);
    const texts: string[] = [];
    for (let position = start; position < Math.min(end, codes.length); position++) {
      const code = codes[order.direction === "asc" ? position : codes.length - 1 - position] ?? 0;
      texts.push(
        code < 0 ? toWire(JSON.stringify(this.#inserted[-1 - code]?.device)) : deviceText(this.#context, code),
      );
    }
    return texts;
  }

  /** The device at a position of an order; `undefined` beyond its end. */
  at(order: DeviceOrder, position: number): Device | undefined {
    const [text] = this.texts(order, position, position + 1);
    return text === undefined ? undefined : (JSON.parse(fromWire(text)) as Device);
  }

  /**
   * Adds a device; its id has to be new.
   *
   * @returns the device, with what the draft left out made up
   */
  insert(draft: DeviceDraft = {}): Device {
    const { account_id, domain_id, pool_id } = this.#context;
    const device: Device = {
      ...deviceOf(this.#context, this.#spare),
      ...draft,
      account_id,
      domain_id,
      pool_id,
      type: "device",
    };
    if (this.#has(device.id)) throw new TypeError(`insertDevice: the pool already has a device ${device.id}`);
    this.#spare += 1;
    this.#inserted.push({ device: structuredClone(device), before: {} });
    this.#changed();
    return device;
  }

  /**
   * Adds a device so that it stands at a position of an order, or at its end where the position is beyond it: it takes
   * the neighbour's value of the sorted field and an id next to the neighbour's. After thousands at the same place there
   * is no id left between two others, and it stands a little off.
   */
  insertAt(order: DeviceOrder, position: number): Device {
    const before = this.at(order, position);
    const neighbour = before ?? this.at(order, this.count - 1);
    const key = neighbour && this.#ids.toKey(neighbour.id);
    if (!neighbour || key === undefined) return this.insert();
    const below = (before !== undefined) === (order.direction === "asc");
    const id = this.#freeId(neighbour.id, key, below ? -1 : 1);
    const { last_seen, first_seen } = neighbour;
    const draft: DeviceDraft = { id };
    if (order.field === "status") draft.status = neighbour.status;
    if (order.field === "title") draft.title = neighbour.title;
    return this.insert(order.field === "last_seen" ? { ...draft, last_seen, first_seen } : draft);
  }

  /** Removes the devices that stand from a position of an order on, as many as there are. */
  deleteAt(order: DeviceOrder, position: number, count: number): void {
    for (const text of this.texts(order, position, position + count))
      this.delete((JSON.parse(fromWire(text)) as Device).id);
  }

  /** The device of an id; `undefined` where there is none. */
  find(id: string): Device | undefined {
    const inserted = this.#inserted.find(({ device }) => device.id === id);
    if (inserted) return structuredClone(inserted.device);
    const index = this.#generatedIndex(id);
    return index === undefined ? undefined : deviceOf(this.#context, index);
  }

  /** Changes a device and returns it; `undefined` where there is none. */
  update(id: string, changes: Omit<DeviceDraft, "id">): Device | undefined {
    const device = this.find(id);
    if (!device) return undefined;
    this.delete(id);
    return this.insert({ ...device, ...changes, id });
  }

  /** Removes a device; whether it was there. */
  delete(id: string): boolean {
    const kept = this.#inserted.filter(({ device }) => device.id !== id);
    const index = this.#generatedIndex(id);
    if (kept.length === this.#inserted.length && index === undefined) return false;
    if (kept.length < this.#inserted.length) this.#inserted = kept;
    else if (index !== undefined) this.#deleted.add(index);
    this.#changed();
    return true;
  }

  #has(id: string): boolean {
    return this.#generatedIndex(id) !== undefined || this.#inserted.some(({ device }) => device.id === id);
  }

  /** The index of a generated device that was not deleted. */
  #generatedIndex(id: string): number | undefined {
    const key = this.#ids.toKey(id);
    const index = key === undefined ? this.#generated : this.#ids.index(key);
    return index < this.#generated && !this.#deleted.has(index) ? index : undefined;
  }

  /** An id just below or above another, with nothing between them, and with room left on both sides. */
  #freeId(id: string, key: number, side: 1 | -1): string {
    const codes = this.#order("id");
    const position = lowerBound(codes.length, (candidate) => this.#idOf(codes[candidate] ?? 0) < id);
    const next = codes[position + side];
    const limit = side < 0 ? -1 : SCRAMBLE_SPACE;
    const gap = Math.abs(((next === undefined ? undefined : this.#ids.toKey(this.#idOf(next))) ?? limit) - key);
    const step = side * Math.max(1, Math.floor(gap / ID_SHARE));
    for (let free = key + step; free >= 0 && free < SCRAMBLE_SPACE; free += side) {
      if (!this.#has(this.#ids.fromKey(free))) return this.#ids.fromKey(free);
    }
    return this.#ids.fromKey(this.#ids.key(this.#spare));
  }

  #idOf(code: number): string {
    return code < 0 ? (this.#inserted[-1 - code]?.device.id ?? "") : this.#ids.fromKey(this.#ids.key(code));
  }

  #order(field: DeviceField): Int32Array {
    const base = this.#baseOrder(field);
    if (this.#version === 0) return base;
    return this.#orders.get(this.#overlayName(field), () =>
      overlay(base, (index) => this.#deleted.has(index), this.#insertions(base, field)),
    );
  }

  #baseOrder(field: DeviceField): Int32Array {
    return this.#orders.get(`${this.#context.pool_id} ${field}`, () =>
      field === "id"
        ? orderByKey(
            this.#generated,
            (index) => this.#ids.key(index),
            (key) => this.#ids.index(key),
          )
        : orderByRank(this.#baseOrder("id"), (index) => rankOf(this.#context.seed, index, field)),
    );
  }

  #overlayName(field: DeviceField): string {
    return `${this.#context.pool_id} ${field} ${this.#version}`;
  }

  #changed(): void {
    for (const field of DEVICE_FIELDS) this.#orders.forget(this.#overlayName(field));
    this.#version += 1;
  }

  #insertions(base: Int32Array, field: DeviceField): Insertion[] {
    const coded = this.#inserted.map((inserted, index) => ({ ...inserted, code: -1 - index }));
    coded.sort((a, b) => compare(a.device, b.device, field));
    return coded.map(({ device, before, code }) => {
      const isBefore = (position: number) => compare(deviceOf(this.#context, base[position] ?? 0), device, field) < 0;
      before[field] ??= lowerBound(base.length, isBefore);
      return { code, before: before[field] };
    });
  }
}

function compare(a: Device, b: Device, field: DeviceField): number {
  const [left, right] = field === "last_seen" ? [a.last_seen.at, b.last_seen.at] : [a[field], b[field]];
  if (left !== right) return left < right ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
