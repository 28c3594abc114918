// Measures all sides in turn, so that a disturbance of the machine affects each of them.

/** The median. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Measures sides against the first of them.
 *
 * @param sides each with a name and a `measure()` that returns an object of numbers
 * @param rounds how often each is measured
 * @returns by side: `median(key)` over its rounds; `ratio(key)` and `difference(key)`, the medians of its ratios to the
 * first side in the same round, and of what it has above that
 */
export async function compare(sides, rounds) {
  const results = sides.map(() => []);
  for (let round = 1; round <= rounds; round++) {
    for (const [at, side] of sides.entries()) {
      progress(`  round ${round}/${rounds}: ${side.name}`);
      results[at].push(await side.measure());
    }
  }
  progress("");
  return sides.map((side, at) => ({
    name: side.name,
    median: (key) => median(results[at].map((result) => result[key])),
    ratio: (key) => median(results[at].map((result, round) => result[key] / results[0][round][key])),
    difference: (key) => median(results[at].map((result, round) => result[key] - results[0][round][key])),
  }));
}

/** Prints the progress on a terminal. */
export function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}
