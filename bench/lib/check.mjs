// What every side does with the items that it reads: make sure that none is missing, twice or out of order.
import { idOf } from "../devices.mjs";

/** Counts items and holds their ids against the order of the list. */
export class Checker {
  #count = 0;
  #last = "";

  /** Takes the next item. */
  take(item) {
    if (!(item.id > this.#last)) throw new Error(`item ${item.id} came after ${this.#last}`);
    this.#last = item.id;
    this.#count++;
  }

  /** Fails unless exactly the first `expected` devices came. */
  finish(expected) {
    // Ascending, as many as there are, and the last one last: then it is each one once.
    if (this.#count !== expected || this.#last !== idOf(expected - 1)) {
      throw new Error(`${this.#count} items up to ${this.#last}, where ${expected} were due`);
    }
  }
}
