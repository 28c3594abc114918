// Sums the results of trials by kind.

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
