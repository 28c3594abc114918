import type { Page } from "./page.js";

/** The ids of the last items: enough to recognise duplicates at page boundaries, in bounded memory. */
export class SeenIds {
  /** The minimum number of last ids that are known, once that many were read; at most twice as many are. */
  static readonly WINDOW = 2_000;
  /** While ids ascend, comparing with the last one shows that an id is new, at a third of the cost of the two sets. */
  #ascending: string[] | undefined = [];
  #recent = new Set<string>();
  #older = new Set<string>();
  #isWhole: boolean;

  /** @param fromTheStart whether the listing begins at the list's own beginning */
  constructor(fromTheStart: boolean) {
    this.#isWhole = fromTheStart;
  }

  /**
   * Whether an unknown item was certainly not read, and is not before the start of the listing.
   *
   * @param coming the number of items that are read until the next lookup: their ids must not evict older ones
   */
  knowsEvery(coming: number): boolean {
    return this.#isWhole && coming <= SeenIds.WINDOW;
  }

  /** The number of items to the left of the read position that are certainly known. */
  get reach(): number {
    return Math.min(this.#ascending?.length ?? this.#recent.size + this.#older.size, SeenIds.WINDOW);
  }

  /** Whether the id of an item is known. */
  knows(item: object): boolean {
    const id = itemIdOf(item);
    if (id === undefined || this.#isAbove(id)) return false;
    this.#fillSets();
    return this.#recent.has(id) || this.#older.has(id);
  }

  /**
   * Keeps only the new items of the page that have an id, at most `max` of them.
   *
   * @param places how many items to leave out at the start of the page (`skip`), and how many of these the page before
   * ended with (`shared`): these are no duplicates
   * @returns the number of the page's items that were processed
   */
  keepNew<T extends object>(page: Page<T>, max: number, { skip, shared }: { skip: number; shared: number }): number {
    const { items } = page;
    let kept = 0;
    let used = skip;
    page.duplicates += skip - shared;
    for (const item of skip === 0 ? items : items.slice(skip)) {
      if (kept >= max) break;
      const id = itemIdOf(item);
      if (id === undefined) page.unusable.push(page.offset + used);
      else if (this.#isNew(id)) items[kept++] = item;
      else page.duplicates++;
      used++;
    }
    items.length = kept;
    return used;
  }

  #isNew(id: string): boolean {
    if (this.#isAbove(id)) return this.#append(id);
    this.#fillSets();
    if (this.#older.has(id)) return false;
    const before = this.#recent.size;
    if (this.#recent.add(id).size === before) return false;
    // Only when it is full, so that every lookup finds a recent id in one of the two sets.
    if (this.#recent.size >= SeenIds.WINDOW) {
      if (this.#older.size > 0) this.#isWhole = false;
      this.#older = this.#recent;
      this.#recent = new Set();
    }
    return true;
  }

  /** Whether an id follows all others of a list whose ids ascend. */
  #isAbove(id: string): boolean {
    return this.#ascending !== undefined && id > (this.#ascending.at(-1) ?? "");
  }

  #append(id: string): true {
    const ids = this.#ascending ?? [];
    // As many as the two sets would hold.
    if (ids.push(id) >= 2 * SeenIds.WINDOW) {
      ids.splice(0, SeenIds.WINDOW);
      this.#isWhole = false;
    }
    return true;
  }

  #fillSets(): void {
    if (this.#ascending === undefined) return;
    const older = this.#ascending.length >= SeenIds.WINDOW ? SeenIds.WINDOW : 0;
    this.#older = new Set(this.#ascending.slice(0, older));
    this.#recent = new Set(this.#ascending.slice(older));
    this.#ascending = undefined;
  }
}

/** The id by which an item is recognised; undefined where it has none. */
export function itemIdOf(item: object): string | undefined {
  const { id } = item as { id?: unknown };
  return typeof id === "string" && id !== "" ? id : undefined;
}
