// What scenarios use: invariants, of which the first broken one ends the run, random numbers, and figures.
import { createHash } from "node:crypto";

const TIMEOUT_MS = 120_000;

/** A broken invariant. */
export class Broken extends Error {
  name = "Broken";
}

/** @throws Broken unless the condition holds */
export function must(holds, text) {
  if (!holds) throw new Broken(typeof text === "function" ? text() : text);
}

/**
 * Waits for a condition.
 *
 * @param condition returns something truthy when it holds
 * @returns this value
 */
export async function until(condition, what) {
  const end = Date.now() + TIMEOUT_MS;
  for (;;) {
    const given = await condition();
    if (given) return given;
    must(Date.now() < end, () => `timed out after ${TIMEOUT_MS / 1000} s waiting for ${what}`);
    await pause(2);
  }
}

/** Resolves after some milliseconds. */
export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A generator of random numbers; the same seed and name yield the same ones. */
export function randomFrom(seed, name) {
  let state = [...name].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0, seed >>> 0);
  /** From 0 up to, but not including, 1 (mulberry32). */
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    fraction,
    /** A whole number from 0 up to, but not including, `end`. */
    below: (end) => Math.floor(fraction() * end),
  };
}

/** Sums by kind, in order of first use. */
export class Tally {
  #sums = new Map();

  /** Adds one trial; `figures` are numbers by name. */
  add(kind, figures) {
    const sum = this.#sums.get(kind) ?? { n: 0 };
    sum.n += 1;
    for (const [name, figure] of Object.entries(figures)) sum[name] = (sum[name] ?? 0) + figure;
    this.#sums.set(kind, sum);
  }

  /** The sums of a kind, with its number of trials `n`. */
  of(kind) {
    return this.#sums.get(kind) ?? { n: 0 };
  }

  /** The total number of trials. */
  get n() {
    return [...this.#sums.values()].reduce((all, { n }) => all + n, 0);
  }
}

/** A quantile of numbers, for example 0.99. */
export function quantile(numbers, part) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Identifies a token between these processes, so that no token is printed. */
export function digest(token) {
  return createHash("sha256").update(token).digest("hex");
}
