import { mix } from "./random.js";

const BASE = 32;
const DIGITS = 10;
const TAG_DIGITS = 4;

/** What the ids of each kind of object begin with. */
export const ID_PREFIXES = { account: "acc_", domain: "dom_", pool: "pool_", ruleset: "rs_", device: "dev_" } as const;

/** The limit of the numbers in ids, which have a fixed width: as text, ids sort as their numbers do. */
export const ID_LIMIT = BASE ** DIGITS;

/** The most pools whose devices can have ids of their own. */
export const MAX_POOLS = BASE ** TAG_DIGITS;

/** What the ids of the devices of a pool begin with, different for every pool. */
export function deviceIdPrefix(seed: number, pool: number): string {
  return writeId(ID_PREFIXES.device, (mix(seed, MAX_POOLS) ^ pool) & (MAX_POOLS - 1), TAG_DIGITS);
}

/** The id of the n-th object of a kind: the high 32 bits of its number differ for every n. */
export function objectId(seed: number, kind: "account" | "domain" | "pool" | "ruleset", n: number): string {
  const key = mix(seed, kind.length * 256 + kind.charCodeAt(0));
  return writeId(ID_PREFIXES[kind], mix(key, n) * 2 ** 18 + (mix(~key, n) >>> 14));
}

/** The id of a number below {@link ID_LIMIT}. */
export function writeId(prefix: string, number: number, digits = DIGITS): string {
  return prefix + number.toString(BASE).padStart(digits, "0");
}

/** The number in an id; `undefined` where the text is not an id with this prefix. */
export function readId(prefix: string, id: string): number | undefined {
  const number = Number.parseInt(id.slice(prefix.length), BASE);
  return number < ID_LIMIT && writeId(prefix, number) === id ? number : undefined;
}
