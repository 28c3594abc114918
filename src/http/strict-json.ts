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

/** The levels of nesting that are read. */
const MAX_DEPTH = 32;
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const SPACE = /[ \t\r\n]*/y;

/**
 * Parses JSON as RFC 8259 defines it, and refuses what parsers disagree about: duplicate names in an object
 * (section 4), nesting deeper than 32, numbers that no double can hold. Objects have no prototype, so that a
 * member named `__proto__` is a member and nothing else.
 *
 * @throws StrictJsonError
 */
export function parseStrictJson(text: string): unknown {
  const plain = parsePlain(text);
  if (plain !== undefined) return plain;
  const reader = new StrictJsonReader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

/** A parsed JSON object. */
export type JsonObject = Record<string, unknown>;

/** Whether parsed JSON is an object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Deletes members that are null, which many programs write for what they do not set; returns the same object. */
export function deleteNulls(object: JsonObject, names: readonly string[] = Object.keys(object)): JsonObject {
  for (const name of names) if (object[name] === null) delete object[name];
  return object;
}

/**
 * Parses text without escapes in a fraction of the time. It has as many names and strings as pairs of quotes: the parsed
 * value has fewer of them if a name appears twice in one object.
 *
 * @returns undefined for text that is left to the reader: with escapes, or with what that refuses
 */
function parsePlain(text: string): unknown {
  if (text.includes("\\")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return 2 * countStrings(value, 0) === countQuotes(text) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The names and strings in a value, whose objects lose their prototype; NaN where it is nested too deep, or has a number
 * that no double can hold.
 */
function countStrings(value: unknown, depth: number): number {
  if (depth > MAX_DEPTH) return Number.NaN;
  if (typeof value === "string") return 1;
  if (typeof value === "number") return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  if (!Array.isArray(value)) Object.setPrototypeOf(value, null);
  const members: unknown[] = Object.values(value);
  let count = Array.isArray(value) ? 0 : members.length;
  for (const member of members) count += countStrings(member, depth + 1);
  return count;
}

function countQuotes(text: string): number {
  let count = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) count += 1;
  return count;
}

class StrictJsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw this.#error(`it is nested deeper than ${MAX_DEPTH}`);
    this.#match(SPACE);
    const mark = this.#text[this.#at];
    if (mark === "{") return this.#object(depth);
    if (mark === "[") return this.#array(depth);
    if (mark === '"') return this.#string();
    const start = this.#at;
    const scalar = this.#match(SCALAR);
    if (!scalar) throw this.#error(mark === undefined ? "it ends too early" : "a value was expected");
    const value: unknown = JSON.parse(scalar);
    if (typeof value === "number" && !Number.isFinite(value)) throw this.#error("the number is too large", start);
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
    const found = this.#match(STRING);
    if (!found) throw this.#error("a string was expected");
    return JSON.parse(found) as string;
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
