import type { Page } from "./page.js";

/** The ids of the last items: enough to recognise what comes twice at a seam, in bounded memory. */
export class SeenIds {
  /** So many of the last ids are known at least, where there were as many; at most twice as many. */
  static readonly WINDOW = 2_000;
  #recent = new Set<string>();
  #older = new Set<string>();
  #isWhole: boolean;

  /** @param fromTheStart whether the listing begins at the list's own beginning */
  constructor(fromTheStart: boolean) {
    this.#isWhole = fromTheStart;
  }

  /**
   * Whether an item that is not known was certainly not read, nor stands before the beginning of the listing.
   *
   * @param coming how many more items are read until it is asked: their ids must not push out older ones
   */
  knowsEvery(coming: number): boolean {
    return this.#isWhole && coming <= SeenIds.WINDOW;
  }

  /** So many items to the left of the read position are known for certain. */
  get reach(): number {
    return Math.min(this.#recent.size + this.#older.size, SeenIds.WINDOW);
  }

  /** Whether the id of an item is one of those. */
  knows(item: object): boolean {
    const id = idOf(item);
    return id !== undefined && (this.#recent.has(id) || this.#older.has(id));
  }

  /**
   * Leaves in the page the items that are new, `room` of them at the most.
   *
   * @param skipped how many items at the page's beginning are left out unseen
   * @returns how many of the page's items were looked at
   */
  keepNew<T extends object>(page: Page<T>, room: number, skipped: number): number {
    const { items } = page;
    let kept = 0;
    let used = skipped;
    page.duplicates += skipped;
    for (const item of skipped === 0 ? items : items.slice(skipped)) {
      if (kept >= room) break;
      used++;
      if (this.#isNew(idOf(item))) items[kept++] = item;
      else page.duplicates++;
    }
    items.length = kept;
    return used;
  }

  #isNew(id: string | undefined): boolean {
    if (id === undefined) return true;
    if (this.#older.has(id)) return false;
    const before = this.#recent.size;
    if (this.#recent.add(id).size === before) return false;
    // Only once it is full: an id that is looked for while the sets change places would be in neither.
    if (this.#recent.size >= SeenIds.WINDOW) {
      if (this.#older.size > 0) this.#isWhole = false;
      this.#older = this.#recent;
      this.#recent = new Set();
    }
    return true;
  }
}

/** The id by which an item is recognised; undefined where it has none. */
export function idOf(item: object): string | undefined {
  const { id } = item as { id?: unknown };
  return typeof id === "string" ? id : undefined;
}
