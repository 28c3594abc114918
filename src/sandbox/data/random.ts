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
