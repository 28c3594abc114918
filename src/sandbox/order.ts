/**
 * Orders of up to a million devices as typed arrays of indexes. A field's value and the position by id fit together
 * into one exact double, so that the engine's numeric sort does all the work and ties fall in id order.
 */

const POSITION_SPAN = 2 ** 20;

/** The most items that an order can hold. */
export const MAX_ORDERED = 1_000_000;

/** The indexes below `count` in the order of their keys, given the inverse of the key function. */
export function orderByKey(count: number, key: (index: number) => number, index: (key: number) => number): Int32Array {
  const keys = new Float64Array(count);
  for (let i = 0; i < count; i++) keys[i] = key(i);
  return Int32Array.from(keys.sort(), index);
}

/** Reorders indexes by a rank (an integer below 2^33); equal ranks stay in the order they came in. */
export function orderByRank(base: Int32Array, rank: (index: number) => number): Int32Array {
  const keys = new Float64Array(base.length);
  for (let position = 0; position < base.length; position++) {
    keys[position] = rank(base[position] ?? 0) * POSITION_SPAN + position;
  }
  return Int32Array.from(keys.sort(), (key) => base[key % POSITION_SPAN] ?? 0);
}

/** Something put into an order: its code, and how many items of the untouched order stand before it. */
export interface Insertion {
  code: number;
  before: number;
}

/**
 * An order with some items left out and some put in.
 *
 * @param insertions sorted as they are to stand
 */
export function overlay(base: Int32Array, isDeleted: (index: number) => boolean, insertions: Insertion[]): Int32Array {
  const merged = new Int32Array(base.length + insertions.length);
  let length = 0;
  let next = 0;
  for (let position = 0; position <= base.length; position++) {
    for (; insertions[next]?.before === position; next++) merged[length++] = insertions[next]?.code ?? 0;
    const index = base[position];
    if (index !== undefined && !isDeleted(index)) merged[length++] = index;
  }
  return merged.subarray(0, length);
}

/** How many items stand before the first for which `isBefore` is false. */
export function lowerBound(length: number, isBefore: (position: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Orders by name, the least recently used forgotten when together they hold more than `budget` entries. */
export class OrderCache {
  readonly #orders = new Map<string, Int32Array>();
  readonly #budget: number;
  #held = 0;

  constructor(budget = 16 * POSITION_SPAN) {
    this.#budget = budget;
  }

  get(name: string, make: () => Int32Array): Int32Array {
    const known = this.#orders.get(name);
    const order = known ?? make();
    if (known) this.#orders.delete(name);
    else this.#held += order.length;
    this.#orders.set(name, order);
    for (const [oldest, { length }] of this.#orders) {
      if (this.#held <= this.#budget || oldest === name) break;
      this.#orders.delete(oldest);
      this.#held -= length;
    }
    return order;
  }

  /** Forgets an order that nobody will ask for again. */
  forget(name: string): void {
    this.#held -= this.#orders.get(name)?.length ?? 0;
    this.#orders.delete(name);
  }
}
