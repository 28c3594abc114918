import { idOf } from "./seen-ids.js";

/** The items from the read position on that may have been read already: none, until the list changes. */
export class Overlap<T extends object> {
  /** Their maximum number. */
  size = 0;
  /** Whether items were inserted since the overlap was last empty: new ones may then be among those that were read. */
  hasInsertions = false;
  /** The id of the last item that was read, before anything was read again. */
  #lastRead: string | undefined;

  /** Inserted items push as many that were read to the right of the read position. */
  insert(count: number): void {
    this.size += count;
    this.hasInsertions = true;
  }

  /** Whether these items include the last one that was read. */
  holdsLastRead(items: readonly T[]): boolean {
    return this.size > 0 && items.some((item) => idOf(item) === this.#lastRead);
  }

  /**
   * Moves the read position behind these items.
   *
   * @param isNew whether the last of them was certainly not read before
   */
  advance(items: readonly T[], isNew: boolean): void {
    this.size = isNew || this.holdsLastRead(items) ? 0 : Math.max(0, this.size - items.length);
    if (this.size > 0) return;
    this.hasInsertions = false;
    const last = items.at(-1);
    if (last) this.#lastRead = idOf(last);
  }
}
