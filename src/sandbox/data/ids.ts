import { mix, SCRAMBLE_SPACE, scramble, unscramble } from "./random.js";

// In ASCII order and of fixed width, so that ids sort as the numbers that they stand for.
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const WIDTH = 10;
const TAG_WIDTH = 4;

/** The most pools that can have a tag of their own in their devices' ids. */
export const MAX_POOLS = 32 ** TAG_WIDTH;

const KINDS = { account: "acc_", domain: "dom_", pool: "pool_", ruleset: "rs_" } as const;

/** The kinds of object whose ids are numbers in disguise. */
export type IdKind = keyof typeof KINDS;

/** What the ids of a kind begin with. */
export function idPrefix(kind: IdKind | "device"): string {
  return kind === "device" ? "dev_" : KINDS[kind];
}

/** The id of the n-th object of a kind. */
export function idOf(seed: number, kind: IdKind, ordinal: number): string {
  return KINDS[kind] + encode(scramble(keyOf(seed, kind), ordinal));
}

/** The ordinal behind an id; `undefined` where the text is no id of that kind. It may be beyond what exists. */
export function ordinalOf(seed: number, kind: IdKind, id: string): number | undefined {
  const value = id.startsWith(KINDS[kind]) ? decode(id.slice(KINDS[kind].length)) : undefined;
  return value === undefined ? undefined : unscramble(keyOf(seed, kind), value);
}

/** Turns device indexes into ids and back, for one pool. */
export class DeviceIds {
  readonly #prefix: string;
  readonly #key: number;

  constructor(seed: number, poolOrdinal: number) {
    this.#key = mix(mix(seed, 0x646576), poolOrdinal);
    const tag = (poolOrdinal ^ mix(seed, 0x746167)) & (MAX_POOLS - 1);
    this.#prefix = idPrefix("device") + encode(tag * 32 ** (WIDTH - TAG_WIDTH)).slice(0, TAG_WIDTH);
  }

  /** The number that stands in the id of a device; ids sort as these numbers do. */
  key(index: number): number {
    return scramble(this.#key, index);
  }

  /** The index of the device whose id holds this number. */
  index(key: number): number {
    return unscramble(this.#key, key);
  }

  /** The id that holds this number. */
  fromKey(key: number): string {
    return this.#prefix + encode(key);
  }

  /** The number in an id; `undefined` where it is no id of this pool. */
  toKey(id: string): number | undefined {
    return id.startsWith(this.#prefix) ? decode(id.slice(this.#prefix.length)) : undefined;
  }
}

function keyOf(seed: number, kind: IdKind): number {
  return mix(seed, kind.length * 256 + kind.charCodeAt(0));
}

function encode(value: number): string {
  return half(Math.floor(value / 2 ** 25)) + half(value % 2 ** 25);
}

function half(bits: number): string {
  const at = (shift: number) => ALPHABET.charAt((bits >>> shift) & 31);
  return at(20) + at(15) + at(10) + at(5) + at(0);
}

function decode(text: string): number | undefined {
  if (text.length !== WIDTH) return undefined;
  let value = 0;
  for (const character of text) {
    const digit = ALPHABET.indexOf(character);
    if (digit < 0) return undefined;
    value = value * 32 + digit;
  }
  return value < SCRAMBLE_SPACE ? value : undefined;
}
