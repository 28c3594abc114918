/**
 * Numbers that look random and are pure functions of their inputs: any device of a million can be made alone, in any
 * order, and comes out the same.
 */

const HALF_BITS = 25;
const HALF = 2 ** HALF_BITS;
const ROUNDS = 4;

/** The number of distinct values that {@link scramble} permutes. */
export const SCRAMBLE_SPACE = HALF * HALF;

/** Mixes two integers into an unsigned 32-bit one; for a fixed `a` no two `b` below 2^32 give the same result. */
export function mix(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul((b + 0x7f4a7c15) | 0, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The same as {@link mix}, as a fraction from 0 up to but without 1. */
export function fraction(a: number, b: number): number {
  return mix(a, b) / 2 ** 32;
}

/** A permutation of the integers below {@link SCRAMBLE_SPACE}: a Feistel network, so that an id leads to its number. */
export function scramble(key: number, value: number): number {
  let left = Math.floor(value / HALF);
  let right = value % HALF;
  for (let round = 0; round < ROUNDS; round++) {
    const next = left ^ (mix(key + round, right) >>> (32 - HALF_BITS));
    left = right;
    right = next;
  }
  return left * HALF + right;
}

/** The inverse of {@link scramble}. */
export function unscramble(key: number, value: number): number {
  let left = Math.floor(value / HALF);
  let right = value % HALF;
  for (let round = ROUNDS - 1; round >= 0; round--) {
    const previous = right ^ (mix(key + round, left) >>> (32 - HALF_BITS));
    right = left;
    left = previous;
  }
  return left * HALF + right;
}

/** A sequence of draws, the same for the same seed. */
export class Draws {
  readonly #seed: number;
  #drawn = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** From 0 up to but without 1. */
  fraction(): number {
    this.#drawn += 1;
    return fraction(this.#seed, this.#drawn);
  }

  /** A whole number below `limit`. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** An element of a list that is never empty. */
  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}
