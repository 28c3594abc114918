import { writeExactJson } from "../../mcp/json-rpc.js";
import { MASK } from "../../redact.js";

/** JSON that is safe to show and parses back equal: control characters are `\u`-escaped. */

export interface JsonStyle {
  /** Prints a `client_secret` unmasked. */
  reveal: boolean;
  /** Keeps only these paths of each item. */
  paths?: readonly string[] | undefined;
  /** Spaces per level; none for one line. */
  indent?: number | undefined;
}

// JSON.stringify escapes C0 and lone surrogates itself; "\n" occurs only between its tokens.
const UNUSUAL = /[^\n\x20-\x7e]+/g;
// A stack of more than eight marks would overlap the neighbouring lines.
const makeUnsafe = () =>
  /[\x7f-\x9f\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]|[^\S\n ]|\p{M}{9,}/gu;
// Made at its first use: reading a pattern of Unicode properties takes milliseconds.
let unsafe: RegExp | undefined;
const SECRET_KEY = '"client_secret":';
const MASKED = ["null", `"${MASK}"`];

/** The text of JSON with every control, bidi and invisible character as a `\u` escape. */
export function escapeJson(json: string): string {
  // The exact class is slow, and most of the text does not need it.
  return json.replace(UNUSUAL, (run) => {
    unsafe ??= makeUnsafe();
    return run.replace(unsafe, (found) => found.split("").map(escapeUnit).join(""));
  });
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The JSON of each item, joined; one check per batch finds what to mask or escape. */
export function stringifyItems(items: readonly unknown[], separator: string, style: JsonStyle): string {
  const { paths, reveal } = style;
  const picked = paths === undefined ? items : items.map((item) => project(item, paths));
  const text = join(reveal ? picked.map((item) => toPlain(item, true)) : picked, separator, style);
  // Items from the SDK mask themselves; only the others need a copy.
  if (reveal || !hasBareSecret(text)) return escapeJson(text);
  return escapeJson(
    join(
      picked.map((item) => toPlain(item, false)),
      separator,
      style,
    ),
  );
}

/** Searched as a text, which takes a fraction of the time of a pattern. */
function hasBareSecret(json: string): boolean {
  for (let at = json.indexOf(SECRET_KEY); at >= 0; at = json.indexOf(SECRET_KEY, at)) {
    at += SECRET_KEY.length;
    const value = json[at] === " " ? at + 1 : at;
    if (!MASKED.some((masked) => json.startsWith(masked, value))) return true;
  }
  return false;
}

function join(items: readonly unknown[], separator: string, style: JsonStyle): string {
  return items.map((item) => writeExactJson(item, style.indent) ?? "null").join(separator);
}

/** The text of a cell: the value at a path, with secrets masked. */

/** How a column's values are shown: `time` is Unix seconds or RFC 3339, `name` a text that must not be cut. */
export type ColumnKind = "text" | "name" | "time" | "number" | "bool" | "list";

export interface Column {
  /** Where the value is in an item; a dot goes one object deeper: `last_seen.at`. */
  path: string;
  header: string;
  /** Default: `text`. */
  kind?: ColumnKind;
  /** The path of a second value, printed after a comma: the country after the city. */
  and?: string;
  /** The least useful width on a terminal. */
  least?: number;
}

export interface CellStyle {
  /** Prints a `client_secret` unmasked. */
  reveal: boolean;
  /** The current time in milliseconds, for relative times. Without it times are RFC 3339 in UTC. */
  now?: (() => number) | undefined;
  /** Whether relative times are abbreviated, as in `5mo ago`. */
  short?: boolean | undefined;
  /** The separator for a list of plain values; without it lists are JSON. */
  listSeparator?: string | undefined;
}

/** The value at a path, `undefined` if there is none. Only own properties count. */
export function readPath(item: unknown, path: string): unknown {
  let value = item;
  for (const key of splitPath(path)) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

const keysOfPaths = new Map<string, readonly string[]>();

/** The keys of a path. Paths are names of columns, so there are few. */
function splitPath(path: string): readonly string[] {
  const known = keysOfPaths.get(path);
  if (known) return known;
  const keys = path.split(".");
  keysOfPaths.set(path, keys);
  return keys;
}

/** The item with only the values at the paths, nested as before. Absent values are omitted. */
export function project(item: unknown, paths: readonly string[]): object {
  const out: Record<string, unknown> = Object.create(null);
  for (const path of paths) {
    const value = readPath(item, path);
    if (value === undefined) continue;
    const keys = splitPath(path);
    const last = keys.at(-1) ?? path;
    let holder = out;
    for (const key of keys.slice(0, -1)) {
      if (!isRecord(holder[key])) holder[key] = Object.create(null);
      holder = holder[key] as Record<string, unknown>;
    }
    holder[last] = value;
  }
  return out;
}

/**
 * A copy of plain data in which every `client_secret`, at any depth, is masked or, with `reveal`, printable. Instances
 * of classes are not copied: they mask themselves.
 */
export function toPlain(value: unknown, reveal: boolean): unknown {
  if (Array.isArray(value)) return value.map((part) => toPlain(part, reveal));
  if (!isRecord(value)) return value;
  // Object.fromEntries defines properties, so that a key "__proto__" stays a key.
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, secretOr(key, part, reveal)]));
}

function secretOr(key: string, value: unknown, reveal: boolean): unknown {
  return toPlain(maskSecret(key, value, reveal), reveal);
}

/** The value of a property; of a `client_secret` the mask, unless it is to be shown. */
export function maskSecret(key: string, value: unknown, reveal: boolean): unknown {
  return key === "client_secret" && !reveal && value != null ? MASK : value;
}

/** Whether the value is plain data, also with the prototype that hides a secret: no instance of a class. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === Object.prototype && !Object.hasOwn(prototype as object, "constructor");
}

/** The value of a column as text, not escaped; empty if the item has none. */
export function cellText(item: unknown, column: Column, style: CellStyle): string {
  const text = formatCell(readPath(item, column.path), column, style);
  if (column.and === undefined) return text;
  return [text, cellText(item, { path: column.and, header: "" }, style)].filter((part) => part !== "").join(", ");
}

/** The text of a value that was read at the path of a column. */
export function formatCell(value: unknown, { path, kind }: Column, style: CellStyle): string {
  return valueText(splitPath(path).at(-1) ?? path, value, kind, style);
}

/** The value of a property as text, not escaped; the property's name decides whether it is a secret. */
export function valueText(key: string, found: unknown, kind: ColumnKind | undefined, style: CellStyle): string {
  const value = secretOr(key, found, style.reveal);
  if (value === undefined || value === null) return "";
  if (kind === "time" && typeof value === "number") return timeText(value, style);
  if (kind === "time" && style.now !== undefined && !Number.isNaN(Date.parse(String(value))))
    return timeText(Date.parse(String(value)) / 1000, style);
  if (typeof value === "string") return value;
  if (typeof value !== "object") return String(value);
  if (style.listSeparator !== undefined && Array.isArray(value) && value.every((part) => typeof part !== "object"))
    return value.join(style.listSeparator);
  return writeExactJson(value) ?? "";
}

/** The leaf values of an object, each with its path and its own key. */
export function leaves(value: object, prefix = ""): { path: string; key: string; value: unknown }[] {
  return Object.entries(value).flatMap(([key, part]) => {
    const path = prefix + key;
    const deeper = isRecord(part) && Object.keys(part).length > 0;
    return deeper ? leaves(part, `${path}.`) : [{ path, key, value: part as unknown }];
  });
}

const UNITS: readonly [string, number, string][] = [
  ["year", 365 * 86_400, "y"],
  ["month", 30 * 86_400, "mo"],
  ["day", 86_400, "d"],
  ["hour", 3600, "h"],
  ["minute", 60, "min"],
  ["second", 1, "s"],
];
const LAST_SECOND = 8.64e12;

function timeText(seconds: number, { now, short }: CellStyle): string {
  // Outside the range of Date, print the number.
  if (!(Math.abs(seconds) <= LAST_SECOND)) return String(seconds);
  if (now === undefined) return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
  const distance = seconds - now() / 1000;
  const found = UNITS.find(([, length]) => Math.abs(distance) >= length);
  if (found === undefined) return "now";
  const [unit, size, abbreviation] = found;
  const count = Math.trunc(Math.abs(distance) / size);
  const text = short ? groupThousands(count) + abbreviation : countText(count, unit);
  return distance < 0 ? `${text} ago` : `in ${text}`;
}

/** A whole number with its thousands apart. Intl does the same, but loading its data costs a fifth of a start. */
export function groupThousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** A count and its noun, which takes an s unless there is one. */
export function countText(count: number, noun: string): string {
  return `${groupThousands(count)} ${noun}${count === 1 ? "" : "s"}`;
}
