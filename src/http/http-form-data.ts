type Value = NonNullable<ReturnType<FormData["get"]>>;
/** As the types of `FormData` have it, which are apart from those of Node's `File`. */
type FormFile = Exclude<Value, string>;
type FormEntry = readonly [name: string, value: Value];

/** `FormData` of the XMLHttpRequest Standard. On Node the global class loads all of `fetch`. */
export class HttpFormData implements FormData {
  #entries: FormEntry[] = [];

  /** @throws `TypeError` for a form element, which only browsers have */
  constructor(form?: undefined) {
    if (form !== undefined) throw new TypeError("form data cannot be made of an element");
  }

  get [Symbol.toStringTag](): string {
    return "FormData";
  }

  append(name: string, value: unknown, fileName?: string): void {
    this.#entries.push(entryOf(name, value, fileName));
  }

  delete(name: string): void {
    const unwanted = wellFormed(name);
    this.#entries = this.#entries.filter(([present]) => present !== unwanted);
  }

  get(name: string): Value | null {
    return this.getAll(name)[0] ?? null;
  }

  getAll(name: string): Value[] {
    const wanted = wellFormed(name);
    return this.#entries.filter(([present]) => present === wanted).map(([, value]) => value);
  }

  has(name: string): boolean {
    return this.getAll(name).length > 0;
  }

  /** Takes the place of the first entry of the name. */
  set(name: string, value: unknown, fileName?: string): void {
    const entry = entryOf(name, value, fileName);
    const at = this.#entries.findIndex(([present]) => present === entry[0]);
    if (at < 0) this.#entries.push(entry);
    else
      this.#entries = this.#entries.flatMap((old, index) =>
        index === at ? [entry] : old[0] === entry[0] ? [] : [old],
      );
  }

  forEach(callback: (value: Value, key: string, form: FormData) => void, self?: unknown): void {
    if (typeof callback !== "function") throw new TypeError("the callback of forEach is not a function");
    for (const [name, value] of this.entries()) callback.call(self, value, name, this);
  }

  /** Shows the changes that are made between two of its steps. */
  *entries(): Generator<[string, Value], undefined, unknown> {
    for (let at = 0; ; at++) {
      const entry = this.#entries[at];
      if (entry === undefined) return;
      yield [...entry];
    }
  }

  *keys(): Generator<string, undefined, unknown> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): Generator<Value, undefined, unknown> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): Generator<[string, Value], undefined, unknown> {
    return this.entries();
  }
}

function entryOf(name: string, value: unknown, fileName: string | undefined): FormEntry {
  const key = wellFormed(name);
  if (!(value instanceof Blob)) {
    if (fileName !== undefined) throw new TypeError("only a Blob has a file name");
    return [key, wellFormed(value as string)];
  }
  if (value instanceof File && fileName === undefined) return [key, value as FormFile];
  const { type } = value;
  const lastModified = value instanceof File ? { lastModified: value.lastModified } : {};
  return [key, new File([value], wellFormed(fileName ?? "blob"), { type, ...lastModified }) as FormFile];
}

/** A string with U+FFFD in place of each half of a surrogate pair (Infra Standard, scalar value string). */
function wellFormed(text: string): string {
  return `${text}`.toWellFormed();
}
