/**
 * Hashes two integers into an unsigned 32-bit one that looks random: all sample data and drawn faults are pure
 * functions of the seed. For a fixed `a` no two `b` below 2^32 give the same result.
 */
export function mix(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul((b + 0x7f4a7c15) | 0, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The next number from 0 up to, but not including, `limit`. */
export type Draw = (limit: number) => number;

/** Returns a sequence of draws, the same for the same seed. */
export function drawsFrom(seed: number): Draw {
  let drawn = 0;
  return (limit) => (mix(seed, drawn++) / 2 ** 32) * limit;
}

/** Draws an element of a list that is never empty. */
export function pickFrom<T>(draw: Draw, list: readonly T[]): T {
  return list[Math.floor(draw(list.length))] as T;
}

const BASE = 32;
const DIGITS = 10;
const TAG_DIGITS = 4;

/** What the ids of each kind of object begin with. */
export const ID_PREFIXES = { account: "acc_", domain: "dom_", pool: "pool_", ruleset: "rs_", device: "dev_" } as const;

/** The limit of the numbers in ids, which have a fixed width: as text, ids sort as their numbers do. */
export const ID_LIMIT = BASE ** DIGITS;

/** The most pools whose devices can have ids of their own. */
export const MAX_POOLS = BASE ** TAG_DIGITS;

/** What the ids of the devices of a pool begin with, different for every pool. */
export function deviceIdPrefix(seed: number, pool: number): string {
  return writeId(ID_PREFIXES.device, (mix(seed, MAX_POOLS) ^ pool) & (MAX_POOLS - 1), TAG_DIGITS);
}

/** The id of the n-th object of a kind: the high 32 bits of its number differ for every n. */
export function objectId(seed: number, kind: "account" | "domain" | "pool" | "ruleset", n: number): string {
  const key = mix(seed, kind.length * 256 + kind.charCodeAt(0));
  return writeId(ID_PREFIXES[kind], mix(key, n) * 2 ** 18 + (mix(~key, n) >>> 14));
}

/** The id of a number below {@link ID_LIMIT}. */
export function writeId(prefix: string, number: number, digits = DIGITS): string {
  return prefix + number.toString(BASE).padStart(digits, "0");
}

/** The number in an id; `undefined` where the text is not an id with this prefix. */
export function readId(prefix: string, id: string): number | undefined {
  const number = Number.parseInt(id.slice(prefix.length), BASE);
  return number < ID_LIMIT && writeId(prefix, number) === id ? number : undefined;
}
