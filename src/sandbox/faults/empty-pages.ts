interface Hole {
  at: number;
  length: number;
}

/**
 * Empty stretches in the offsets of a list. An empty page has to be followed by a higher offset, and yet no item may
 * be lost: so the offsets of the list get a hole, and every page behind it is shifted by as much.
 *
 * A hole stays where it is, since a list of which half was read has to add up.
 */
export class EmptyPages {
  readonly #lists = new Map<string, Hole[]>();

  /** Puts a hole into a list; one that would overlap another is left out. */
  add(list: string, at: number, length: number): void {
    const holes = this.#lists.get(list) ?? [];
    if (holes.some((hole) => at < hole.at + hole.length && hole.at < at + length)) return;
    this.#lists.set(
      list,
      [...holes, { at, length }].sort((a, b) => a.at - b.at),
    );
  }

  /** The first offset from `offset` on that lies in no hole. */
  free(list: string, offset: number): number {
    const behind = (at: number, hole: Hole) =>
      at >= hole.at && at < hole.at + hole.length ? hole.at + hole.length : at;
    return (this.#lists.get(list) ?? []).reduce(behind, offset);
  }

  /** The position of the item at or behind an offset. */
  position(list: string, offset: number): number {
    const skipped = (this.#lists.get(list) ?? []).map(({ at, length }) => Math.max(0, Math.min(length, offset - at)));
    return offset - skipped.reduce((sum, part) => sum + part, 0);
  }

  /** The offset behind the last item of a list of `count` items; a hole behind its end does not count. */
  end(list: string, count: number): number {
    return (this.#lists.get(list) ?? []).reduce((end, hole) => (hole.at < end ? end + hole.length : end), count);
  }

  clear(): void {
    this.#lists.clear();
  }
}
