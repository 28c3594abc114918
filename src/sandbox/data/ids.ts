import { mix, SCRAMBLE_SPACE, scramble, unscramble } from "./random.js";

const BASE = 32;
const WIDTH = 10;
const TAG_WIDTH = 4;
const PREFIXES = { account: "acc_", domain: "dom_", pool: "pool_", ruleset: "rs_", device: "dev_" } as const;

/** The kinds of object that have ids. */
export type IdKind = keyof typeof PREFIXES;

/** The most pools that can have a tag of their own in their devices' ids. */
export const MAX_POOLS = BASE ** TAG_WIDTH;

/** What the ids of a kind begin with. */
export function idPrefix(kind: IdKind): string {
  return PREFIXES[kind];
}

/** Turns ordinals into ids and back: for one kind of object, or for the devices of one pool. */
export class Ids {
  readonly #prefix: string;
  readonly #key: number;

  /** @param pool the ordinal of the pool, for devices */
  constructor(seed: number, kind: IdKind, pool?: number) {
    const key = mix(seed, kind.length * 256 + kind.charCodeAt(0));
    this.#key = pool === undefined ? key : mix(key, pool);
    const tag = pool === undefined ? "" : encode((pool ^ key) & (MAX_POOLS - 1), TAG_WIDTH);
    this.#prefix = PREFIXES[kind] + tag;
  }

  /** The id of the n-th object. */
  of(ordinal: number): string {
    return this.fromKey(scramble(this.#key, ordinal));
  }

  /** The ordinal behind an id; `undefined` where the text is no such id. It may be beyond what exists. */
  ordinal(id: string): number | undefined {
    const key = this.toKey(id);
    return key === undefined ? undefined : unscramble(this.#key, key);
  }

  /** The id that holds this number: ids are of fixed width and sort as their numbers do. */
  fromKey(key: number): string {
    return this.#prefix + encode(key, WIDTH);
  }

  /** The number in an id; `undefined` where the text is no such id. */
  toKey(id: string): number | undefined {
    const key = Number.parseInt(id.slice(this.#prefix.length), BASE);
    return key < SCRAMBLE_SPACE && this.fromKey(key) === id ? key : undefined;
  }
}

function encode(value: number, width: number): string {
  return value.toString(BASE).padStart(width, "0");
}
