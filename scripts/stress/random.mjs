// Random numbers that depend on the seed only.

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
