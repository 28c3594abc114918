/** A range of offsets without items. */
interface Gap {
  at: number;
  length: number;
}

/**
 * Gaps in the offsets of a list. The page after an empty one has a higher offset, and yet no item may be lost: so the
 * offsets of the list get a gap, and every page behind it is shifted by the length of the gap.
 *
 * A gap stays in place, so that a list that is half read still adds up.
 */
export class EmptyPages {
  readonly #lists = new Map<string, Gap[]>();

  /** Adds a gap to a list; one that overlaps another is ignored. */
  add(list: string, at: number, length: number): void {
    const gaps = this.#lists.get(list) ?? [];
    if (gaps.some((gap) => at < gap.at + gap.length && gap.at < at + length)) return;
    this.#lists.set(
      list,
      [...gaps, { at, length }].sort((a, b) => a.at - b.at),
    );
  }

  /** The first offset from `offset` on that lies in no gap. */
  free(list: string, offset: number): number {
    const behind = (at: number, gap: Gap) => (at >= gap.at && at < gap.at + gap.length ? gap.at + gap.length : at);
    return (this.#lists.get(list) ?? []).reduce(behind, offset);
  }

  /** The position of the item at or behind an offset. */
  position(list: string, offset: number): number {
    const skipped = (this.#lists.get(list) ?? []).map(({ at, length }) => Math.max(0, Math.min(length, offset - at)));
    return offset - skipped.reduce((sum, part) => sum + part, 0);
  }

  /** The offset behind the last item of a list of `count` items; a gap behind its end does not count. */
  end(list: string, count: number): number {
    return (this.#lists.get(list) ?? []).reduce((end, gap) => (gap.at < end ? end + gap.length : end), count);
  }

  clear(): void {
    this.#lists.clear();
  }
}
