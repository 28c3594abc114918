/** What a page that is read again shows of the read position. */
export interface PageObservation {
  /** The page's offset. */
  readonly offset: number;
  /** The number of its items up to and including the last one whose id is known; 0 when none is. */
  readonly known: number;
  /** Whether the page holds the last item that was read. */
  readonly holdsLastRead: boolean;
}

/** How the read position is found again. */
export interface SearchStrategy {
  /** Whether every id is remembered: known items are then skipped one by one, else all up to the last known one. */
  readonly isExact: boolean;
  /** Whether the read position is on this page. */
  isFound(observation: PageObservation): boolean;
}

/**
 * All ids are remembered, from the beginning of the list: what is not known was not read. Nothing has to be skipped,
 * because each known item is left out by its id.
 *
 *     list       offset  page  decision
 *     abcdef     0       a b   skip 0    a b are new
 *     bcdef      2       d e   rewind 1  one item fewer: c may have moved to offset 1
 *     bcdef      1       c d   rewind 0  neither is known, so more may have moved
 *     bcdef      0       b c   skip 0    b is known: c is new
 */
export const everyId: SearchStrategy = { isExact: true, isFound: ({ known, offset }) => known > 0 || offset === 0 };

/**
 * Older ids are forgotten, or the listing began in the middle, and items were only deleted. The items read are then
 * contiguous: everything up to the last known item was read, and everything behind it is new.
 *
 *     list       offset  page  decision
 *     abcdefgh   2       c d   skip 0    c d are new; a b were never read, so their ids are not known
 *     bcdefgh    4       f g   rewind 2  one item fewer, and one more to meet a known item
 *     bcdefgh    2       d e   skip 1    d is known: e is new
 */
export const recentIds: SearchStrategy = { isExact: false, isFound: ({ known }) => known > 0 };

/**
 * As {@link recentIds}, but items were inserted too, so that new ones may be among those that were read. Only the last
 * item that was read marks the read position.
 *
 *     list         offset  page  decision
 *     abcdefgh     2       c d   skip 0    c d are new
 *     xyzabcdefgh  4       b c   rewind 3  three items more: further than the two known ids reach
 *     xyzabcdefgh  3       a b   skip 2    d is not here: read on
 *     xyzabcdefgh  5       c d   skip 2    d is here, and everything up to it was read
 *     xyzabcdefgh  7       e f   skip 0    e f are new
 */
export const lastItem: SearchStrategy = { isExact: false, isFound: ({ holdsLastRead }) => holdsLastRead };
