/** Hides tokens in what servers answer, in whatever spelling. */
import type { Secret } from "../redact.js";

/** The tokens that a server got last. More are sent while a response arrives only if it takes many refreshes. */
const KEPT = 8;
const ASTERISK = 0x2a;
/** The end of a token that is hashed: its beginning may be that of all tokens of an issuer. */
const MAX_WINDOW = 16;
/** Spellings within spellings that are read. */
const MAX_LEVELS = 5;
const FACTOR = 0x01000193;

/** The names that HTML has for visible ASCII characters, each before its character, and a longer one before its beginning. */
const ENTITIES = new Map(
  `amp& apos' ast* bsol\\ colon: commat@ comma, dollar$ equals= excl! grave\` gt> hat^ lbrace{ lbrack[ lcub{ lowbar_ lpar( lsqb[
  lt< midast* num# percnt% period. plus+ quest? quot" rbrace} rbrack] rcub} rpar) rsqb] semi; sol/ underbar_ verbar| vert|`
    .split(/\s+/)
    .map((entity) => [entity.slice(0, -1), entity.slice(-1)]),
);
/** One character in another spelling: of JSON, of a URL, of HTML. A back slash and an ampersand may begin an inner one. */
const SPELLED = new RegExp(
  `\\\\(?:["\\\\/]|u00([0-7][\\da-f]))|%([0-7][\\da-f])|&(?:#0*(\\d{2,3})(?!\\d)|#x0*([\\da-f]{2})(?![\\da-f])|(${[...ENTITIES.keys()].join("|")}));?`,
  "gi",
);
/** What may be the beginning of one. */
const HALF_SPELLED = /(?:\\+(?:u0{0,2}[0-7]?)?|%[0-7]?|&(?:#x?[\da-f]{0,12}|[a-z]{0,8}))$/i;
const LONGEST_HALF = 16;

/** A text with one level of spellings read: where each of its characters begins in the source, and where the source ends. */
interface Level {
  /** In lower case, as the names of headers are. */
  readonly text: string;
  /** Undefined where it is the source. */
  readonly starts: Uint32Array | undefined;
  /** Where what may be the beginning of a spelling begins. */
  readonly end: number;
}

/**
 * The tokens that a broker has sent, for all its servers: one may return what another client has sent. What it costs to look
 * through a text does not depend on their number: the ends of the tokens are looked up by a hash that moves along.
 *
 * A server that wants to hand out its token can encode it in a way of its own; one that echoes the headers of a request, in
 * JSON, HTML or a URL, does not.
 */
export class TokenMask {
  /** By the name of the grant, the oldest first, in lower case: several grants may have the same. */
  readonly #sent = new Map<string, string[]>();
  #index = new TokenIndex([]);

  /** A token that was sent for a grant. */
  add(name: string, token: Secret): void {
    const text = token.reveal().toLowerCase();
    const sent = this.#sent.get(name) ?? [];
    if (sent.includes(text)) return;
    sent.push(text);
    this.#sent.set(name, sent);
    if (!this.#index.add(text)) this.#index = new TokenIndex([...this.#sent.values()].flat());
    if (sent.length > KEPT) this.#index.remove(sent.shift() ?? "");
  }

  /** Forgets the tokens of all other grants. */
  keep(names: ReadonlySet<string>): void {
    for (const [name, tokens] of this.#sent) {
      if (names.has(name)) continue;
      this.#sent.delete(name);
      for (const token of tokens) this.#index.remove(token);
    }
  }

  isIn(text: string): boolean {
    return !this.#index.isEmpty && findLevels(text, true).some((level) => this.#index.find(level.text, () => true));
  }

  /** The bytes with asterisks for tokens, a part at a time; what may be the beginning of a token waits for the next part. */
  over(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    let held = Buffer.alloc(0);
    return body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (part, controller) => {
          const joined = Buffer.concat([held, part]);
          const ready = this.#hide(joined, false);
          held = joined.subarray(ready);
          if (ready > 0) controller.enqueue(joined.subarray(0, ready));
        },
        flush: (controller) => {
          this.#hide(held, true);
          controller.enqueue(held);
        },
      }),
    );
  }

  /** Hides the tokens in bytes. @returns where the beginning of one may begin, if more bytes follow */
  #hide(bytes: Buffer, isLast: boolean): number {
    let ready = bytes.length;
    if (this.#index.isEmpty) return ready;
    for (const { text, starts, end } of findLevels(bytes.toString("latin1"), isLast)) {
      const at = (index: number) => starts?.[index] ?? index;
      this.#index.find(text, (from, to) => {
        bytes.fill(ASTERISK, at(from), at(to));
        return false;
      });
      if (!isLast) ready = Math.min(ready, at(this.#index.beginning(text, end)));
    }
    return ready;
  }
}

/** A text, and the same with its spellings read, and those within. */
function findLevels(source: string, isLast: boolean): Level[] {
  const levels: Level[] = [];
  let level: Pick<Level, "text" | "starts"> | undefined = { text: source, starts: undefined };
  for (let nth = 0; level !== undefined && nth < MAX_LEVELS; nth++) {
    const { text, starts }: Pick<Level, "text" | "starts"> = level;
    const half = isLast ? null : HALF_SPELLED.exec(text.slice(-LONGEST_HALF));
    const end = text.length - (half?.[0].length ?? 0);
    levels.push({ text: text.toLowerCase(), starts, end });
    level = read(text.slice(0, end), starts);
  }
  return levels;
}

/** @returns undefined for a text in which nothing is spelled in another way */
function read(text: string, before: Uint32Array | undefined): Pick<Level, "text" | "starts"> | undefined {
  SPELLED.lastIndex = 0;
  let found = SPELLED.exec(text);
  if (found === null) return undefined;
  const starts = new Uint32Array(text.length + 1);
  let out = "";
  let from = 0;
  const copy = (end: number) => {
    for (let at = from; at < end; at++) starts[out.length + at - from] = before?.[at] ?? at;
    out += text.slice(from, end);
  };
  for (; found !== null; found = SPELLED.exec(text)) {
    copy(found.index);
    starts[out.length] = before?.[found.index] ?? found.index;
    out += decodeCharacter(found);
    from = found.index + found[0].length;
  }
  copy(text.length);
  starts[out.length] = before?.[text.length] ?? text.length;
  return { text: out, starts };
}

function decodeCharacter([spelled, json, percent, decimal, hex, entity]: RegExpExecArray): string {
  if (entity !== undefined) return ENTITIES.get(entity.toLowerCase()) ?? "";
  if (decimal !== undefined) return String.fromCharCode(Number(decimal) & 0xff);
  const code = json ?? percent ?? hex;
  return code === undefined ? (spelled[1] ?? "") : String.fromCharCode(Number.parseInt(code, 16));
}

class TokenIndex {
  readonly #window: number;
  /** What the character that leaves the window has been multiplied by. */
  readonly #outFactor: number;
  /** Tokens by the hash of their ends. */
  readonly #byHash = new Map<number, string[]>();
  /** Which hashes there may be, and which two characters a token begins with. */
  readonly #filter: Uint8Array;
  readonly #firsts = new Uint8Array(0x10000);
  /** For the search of what may begin a token. */
  readonly #sorted: string[] = [];
  #longest = 0;
  #room: number;

  constructor(tokens: readonly string[]) {
    this.#window = Math.min(MAX_WINDOW, ...tokens.map(({ length }) => length));
    let factor = 1;
    for (let nth = 0; nth < this.#window; nth++) factor = Math.imul(factor, FACTOR);
    this.#outFactor = factor;
    this.#filter = new Uint8Array(2 ** Math.ceil(Math.log2(64 * (tokens.length + 1))));
    this.#room = this.#filter.length / 8;
    for (const token of tokens) this.add(token);
  }

  get isEmpty(): boolean {
    return this.#sorted.length === 0;
  }

  /** @returns false where a larger index is needed */
  add(token: string): boolean {
    if (token.length < this.#window || this.#room === 0) return false;
    const hash = this.#hashOf(token);
    this.#byHash.set(hash, [...(this.#byHash.get(hash) ?? []), token]);
    this.#filter[this.#slot(hash)] = 1;
    this.#firsts[pairAt(token, 0)] = 1;
    this.#sorted.splice(this.#placeOf(token), 0, token);
    this.#longest = Math.max(this.#longest, token.length);
    this.#room -= 1;
    return true;
  }

  remove(token: string): void {
    const hash = this.#hashOf(token);
    const found = this.#byHash.get(hash) ?? [];
    found.splice(found.indexOf(token), 1);
    if (found.length === 0) this.#byHash.delete(hash);
    this.#sorted.splice(this.#placeOf(token), 1);
  }

  /** Calls for each token in a text, until that returns true. @returns whether it did */
  find(text: string, onToken: (from: number, end: number) => boolean): boolean {
    let hash = 0;
    for (let at = 0; at < text.length; at++) {
      hash = (Math.imul(hash, FACTOR) + text.charCodeAt(at)) | 0;
      if (at >= this.#window) hash = (hash - Math.imul(this.#outFactor, text.charCodeAt(at - this.#window))) | 0;
      if (this.#filter[this.#slot(hash)] === 0) continue;
      for (const token of this.#byHash.get(hash) ?? []) {
        const from = at + 1 - token.length;
        if (from >= 0 && text.startsWith(token, from) && onToken(from, at + 1)) return true;
      }
    }
    return false;
  }

  /** Where the last part of a text before `end` begins that may be the beginning of a token; `end` where none does. */
  beginning(text: string, end: number): number {
    for (let at = Math.max(0, end - this.#longest + 1); at < end; at++) {
      if (at + 1 < end && this.#firsts[pairAt(text, at)] === 0) continue;
      const begins = text.slice(at, end);
      if (this.#sorted[this.#placeOf(begins)]?.startsWith(begins)) return at;
    }
    return end;
  }

  #hashOf(token: string): number {
    let hash = 0;
    for (let at = token.length - this.#window; at < token.length; at++)
      hash = (Math.imul(hash, FACTOR) + token.charCodeAt(at)) | 0;
    return hash;
  }

  #slot(hash: number): number {
    return (hash ^ (hash >>> 15)) & (this.#filter.length - 1);
  }

  /** Where a text is among the sorted tokens, or would be. */
  #placeOf(text: string): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? "") < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function pairAt(text: string, at: number): number {
  return ((text.charCodeAt(at) & 0xff) << 8) | (text.charCodeAt(at + 1) & 0xff);
}
