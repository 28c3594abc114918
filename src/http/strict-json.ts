import { orUndefined } from "../errors.js";
import { quote } from "../redact.js";

/** Why a text is not acceptable JSON, and where: line and column are one-based. */
export class StrictJsonError extends Error {
  override readonly name = "StrictJsonError";
  readonly line: number;
  readonly column: number;

  constructor(what: string, text: string, at: number) {
    const before = text.slice(0, at).split("\n");
    const line = before.length;
    const column = (before.at(-1)?.length ?? 0) + 1;
    super(`${what} (line ${line}, column ${column})`);
    this.line = line;
    this.column = column;
  }
}

const MAX_DEPTH = 32;
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const SPACE = /[ \t\r\n]*/y;
const AFTER_NAME = /[ \t\r\n]*:/y;

export interface StrictJsonOptions {
  /** The levels of nesting that are read. Default 32. */
  readonly maxDepth?: number;
  /** Reads a number; undefined for one that is too large. Default: as a double. */
  readonly readNumber?: ((text: string) => unknown) | undefined;
}

/**
 * Parses JSON as RFC 8259 defines it, and refuses what parsers disagree about: duplicate names in an object
 * (section 4), nesting deeper than 32, numbers that no double can hold. Objects have no prototype, so that a
 * member named `__proto__` is a member and nothing else.
 *
 * @throws StrictJsonError
 */
export function parseStrictJson(text: string, { maxDepth = MAX_DEPTH, readNumber }: StrictJsonOptions = {}): unknown {
  const plain = readNumber === undefined ? parsePlain(text, maxDepth) : undefined;
  if (plain !== undefined) return plain;
  return readWhole(text, maxDepth, readNumber ?? readDouble);
}

/**
 * Parses JSON as `JSON.parse` does, without a fault of V8 since Node.js 24: an escape in a name can turn that name into one
 * of an earlier text (nodejs/node#63785).
 *
 * @throws SyntaxError
 */
export function parseAnyJson(text: string): unknown {
  if (!hasEscapedName(text)) return JSON.parse(text);
  try {
    // A copy, whose objects have the usual prototype.
    return structuredClone(readWhole(text, Number.POSITIVE_INFINITY, readDouble));
  } catch {
    return JSON.parse(text);
  }
}

export type JsonObject = Record<string, unknown>;

/** Whether parsed JSON is an object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object in a text of JSON; undefined for another value, and for a text that is no JSON. */
export function parseJsonObject(text: string): JsonObject | undefined {
  const value = orUndefined(() => parseStrictJson(text));
  return isJsonObject(value) ? value : undefined;
}

/** Deletes members that are null, which many programs write for what they do not set; returns the same object. */
export function deleteNulls(object: JsonObject, names: readonly string[] = Object.keys(object)): JsonObject {
  for (const name of names) if (object[name] === null) delete object[name];
  return object;
}

/** Deletes members that are null, "" or [], except those that are needed; returns the same object. */
export function deleteEmpty(object: JsonObject, needed: readonly string[]): JsonObject {
  for (const [name, value] of Object.entries(object)) {
    const isEmpty = value === null || value === "" || (Array.isArray(value) && value.length === 0);
    if (isEmpty && !needed.includes(name)) delete object[name];
  }
  return object;
}

function readDouble(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/**
 * Parses text in a fraction of the time. It has as many names and strings as pairs of quotes: the parsed value has fewer
 * of them if a name appears twice in one object.
 *
 * @returns undefined for text that is left to the reader, which says what is wrong with it
 */
function parsePlain(text: string, maxDepth: number): unknown {
  if (hasEscapedName(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return 2 * countStrings(value, maxDepth) === countQuotes(text) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The names and strings in a value, whose objects lose their prototype; NaN where it is nested too deep, or has a number
 * that no double can hold.
 */
function countStrings(value: unknown, levels: number): number {
  if (levels < 0) return Number.NaN;
  if (typeof value === "string") return 1;
  if (typeof value === "number") return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  if (!Array.isArray(value)) Object.setPrototypeOf(value, null);
  const members: unknown[] = Object.values(value);
  let count = Array.isArray(value) ? 0 : members.length;
  for (const member of members) count += countStrings(member, levels - 1);
  return count;
}

/** Whether the name of a member has an escape, which no writer needs for the names of a protocol. */
function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf("\\"); at !== -1; ) {
    const end = endOfString(text, at + 2);
    AFTER_NAME.lastIndex = end + 1;
    if (AFTER_NAME.test(text)) return true;
    at = text.indexOf("\\", end);
  }
  return false;
}

/** The quotes that begin or end a string of JSON. */
function countQuotes(text: string): number {
  let count = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', endOfString(text, at + 1) + 1)) count += 2;
  return count;
}

/** Where the quote is that ends the string which begins here; the end of a text without it. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text[before - 1] === "\\") before -= 1;
    if ((at - before) % 2 === 0) return at;
  }
  return text.length;
}

function readWhole(text: string, maxDepth: number, readNumber: (text: string) => unknown): unknown {
  const reader = new StrictJsonReader(text, maxDepth, readNumber);
  const value = reader.value(0);
  reader.end();
  return value;
}

class StrictJsonReader {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #readNumber: (text: string) => unknown;
  #at = 0;

  constructor(text: string, maxDepth: number, readNumber: (text: string) => unknown) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#readNumber = readNumber;
  }

  value(depth: number): unknown {
    if (depth > this.#maxDepth) throw this.#error(`it is nested deeper than ${this.#maxDepth}`);
    this.#match(SPACE);
    const mark = this.#text[this.#at];
    if (mark === "{") return this.#object(depth);
    if (mark === "[") return this.#array(depth);
    if (mark === '"') return this.#string();
    const start = this.#at;
    const scalar = this.#match(SCALAR);
    if (!scalar) throw this.#error(mark === undefined ? "it ends too early" : "a value was expected");
    const value = /^[tfn]/.test(scalar) ? (JSON.parse(scalar) as unknown) : this.#readNumber(scalar);
    if (value === undefined) throw this.#error("the number is too large", start);
    return value;
  }

  end(): void {
    this.#match(SPACE);
    if (this.#at < this.#text.length) throw this.#error("something follows the value");
  }

  #object(depth: number): Record<string, unknown> {
    const object = Object.create(null) as Record<string, unknown>;
    this.#at++;
    if (this.#take("}")) return object;
    do {
      this.#match(SPACE);
      const start = this.#at;
      const name = this.#string();
      if (name in object) throw this.#error(`the name ${quote(name, 80)} appears twice in one object`, start);
      if (!this.#take(":")) throw this.#error('":" was expected');
      object[name] = this.value(depth + 1);
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#error('"," or "}" was expected');
    return object;
  }

  #array(depth: number): unknown[] {
    const array: unknown[] = [];
    this.#at++;
    if (this.#take("]")) return array;
    do array.push(this.value(depth + 1));
    while (this.#take(","));
    if (!this.#take("]")) throw this.#error('"," or "]" was expected');
    return array;
  }

  #string(): string {
    const end = this.#text[this.#at] === '"' ? endOfString(this.#text, this.#at + 1) + 1 : this.#at;
    try {
      const value = JSON.parse(this.#text.slice(this.#at, end)) as string;
      this.#at = end;
      return value;
    } catch {
      throw this.#error("a string was expected");
    }
  }

  #take(mark: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== mark) return false;
    this.#at++;
    return true;
  }

  #match(shape: RegExp): string {
    shape.lastIndex = this.#at;
    const found = shape.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  #error(what: string, at = this.#at): StrictJsonError {
    return new StrictJsonError(what, this.#text, at);
  }
}
