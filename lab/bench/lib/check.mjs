// Every side checks that no item is missing, repeated or out of order.
import { idOf } from "../devices.mjs";

/** Counts items and checks that their ids ascend. */
export class Checker {
  #count = 0;
  #last = "";

  /** Checks the next item. */
  take(item) {
    if (!(item.id > this.#last)) throw new Error(`item ${item.id} came after ${this.#last}`);
    this.#last = item.id;
    this.#count++;
  }

  /** Fails unless exactly the first `expected` devices came. */
  finish(expected) {
    // Ascending ids, the right count and the right last id: each item came once.
    if (this.#count !== expected || this.#last !== idOf(expected - 1)) {
      throw new Error(`${this.#count} items up to ${this.#last}, expected ${expected}`);
    }
  }
}
