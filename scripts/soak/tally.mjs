// Adds up what trials of one kind came to.

/** Sums by kind, in the order in which the kinds first came. */
export class Tally {
  #sums = new Map();

  /** Adds one trial; `figures` are numbers by name. */
  add(kind, figures) {
    const sum = this.#sums.get(kind) ?? { n: 0 };
    sum.n += 1;
    for (const [name, figure] of Object.entries(figures)) sum[name] = (sum[name] ?? 0) + figure;
    this.#sums.set(kind, sum);
  }

  /** What the trials of a kind came to, `n` of them. */
  of(kind) {
    return this.#sums.get(kind) ?? { n: 0 };
  }

  /** How many trials there were in all. */
  get n() {
    return [...this.#sums.values()].reduce((all, { n }) => all + n, 0);
  }
}
