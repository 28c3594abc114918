type Init = NonNullable<RequestInit["headers"]> | Iterable<readonly string[]>;

/** A method or the name of a field (RFC 9110 section 5.6.2). */
export const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NOT_IN_VALUES = /[\0\r\n\u0100-\uffff]/;
const OUTER_WHITESPACE = /^[\t\n\r ]+|[\t\n\r ]+$/g;
const SEPARATE = "set-cookie";

/**
 * `Headers` of the Fetch Standard. On Node the global class loads all of `fetch`, which takes a short program longer than
 * the rest of its start.
 *
 * @throws `TypeError` for a name or a value that no message can have, a line break for example
 */
export class HttpHeaders implements Headers {
  /** By name in small letters; several values of `set-cookie` alone, which cannot be joined. */
  readonly #values = new Map<string, string[]>();
  #isFrozen = false;
  /** What iterators read, until a change. */
  #sorted: (readonly [string, string])[] | undefined;

  /** Makes headers that cannot be changed, as those of a response that was received (Fetch Standard, the guard `immutable`). */
  static freeze(headers: HttpHeaders): void {
    headers.#isFrozen = true;
  }

  constructor(init: Init = {}) {
    this.#fill(init);
  }

  get [Symbol.toStringTag](): string {
    return "Headers";
  }

  append(name: string, value: string): void {
    const key = fieldName(name);
    const added = fieldValue(key, value);
    this.#change();
    this.#append(key, added);
  }

  delete(name: string): void {
    const key = fieldName(name);
    this.#change();
    this.#values.delete(key);
  }

  get(name: string): string | null {
    return (this.#values.get(name) ?? this.#values.get(fieldName(name)))?.join(", ") ?? null;
  }

  getSetCookie(): string[] {
    return [...(this.#values.get(SEPARATE) ?? [])];
  }

  has(name: string): boolean {
    return this.#values.has(fieldName(name));
  }

  set(name: string, value: string): void {
    const key = fieldName(name);
    const values = [fieldValue(key, value)];
    this.#change();
    this.#values.set(key, values);
  }

  forEach(callback: (value: string, key: string, headers: Headers) => void, self?: unknown): void {
    if (typeof callback !== "function") throw new TypeError("the callback of forEach is not a function");
    for (const [name, value] of this.entries()) callback.call(self, value, name, this);
  }

  *entries(): Generator<[string, string], undefined, unknown> {
    for (const [name, value] of this.#pairs()) yield [name, value];
  }

  *keys(): Generator<string, undefined, unknown> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): Generator<string, undefined, unknown> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): Generator<[string, string], undefined, unknown> {
    return this.entries();
  }

  #fill(init: Init): void {
    if (typeof init !== "object" || init === null) throw new TypeError("headers are made of an object or of pairs");
    if (init instanceof HttpHeaders && init[Symbol.iterator] === HttpHeaders.prototype[Symbol.iterator]) {
      // Their names and values were checked.
      for (const [key, values] of init.#values) this.#values.set(key, [...values]);
      return;
    }
    for (const given of Symbol.iterator in init ? init : Object.entries(init)) {
      const [name, value] = pairOf(given);
      const key = fieldName(name);
      this.#append(key, fieldValue(key, value));
    }
  }

  #append(key: string, added: string): void {
    const present = this.#values.get(key);
    if (present === undefined) this.#values.set(key, [added]);
    else if (key === SEPARATE) present.push(added);
    else present[0] += `, ${added}`;
  }

  #change(): void {
    if (this.#isFrozen) throw new TypeError("these headers cannot be changed");
    this.#sorted = undefined;
  }

  #pairs(): (readonly [string, string])[] {
    if (this.#sorted !== undefined) return this.#sorted;
    this.#sorted = [];
    for (const name of [...this.#values.keys()].sort()) {
      for (const value of this.#values.get(name) ?? []) this.#sorted.push([name, value]);
    }
    return this.#sorted;
  }
}

function pairOf(given: unknown): [name: string, value: string] {
  const isList = typeof given === "object" && given !== null && Symbol.iterator in given;
  const pair = Array.isArray(given) ? given : isList ? [...(given as Iterable<string>)] : [];
  if (pair.length !== 2) throw new TypeError("a header is a pair of name and value");
  return pair as [string, string];
}

function fieldName(name: string): string {
  const text = `${name}`;
  if (!TOKEN.test(text)) throw new TypeError("the name of a header is invalid");
  return text.toLowerCase();
}

function fieldValue(key: string, value: string): string {
  const text = `${value}`.replace(OUTER_WHITESPACE, "");
  // The value may be a secret.
  if (NOT_IN_VALUES.test(text)) throw new TypeError(`the header ${key} has an invalid value`);
  return text;
}
