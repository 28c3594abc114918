/**
 * Makes text safe to print: masks secrets, and escapes text from servers.
 *
 * This module imports nothing, so that every layer can use it.
 */

/** The text that replaces a secret. */
export const MASK = "********";

/** What a secret shows instead of its value. No header can carry it: `fetch` throws where it gets into one by mistake. */
export const SECRET_MASK = "••••••••";

const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/**
 * A string that does not print: `String()`, `JSON.stringify`, `util.inspect` and template literals show a mask.
 * Only {@link Secret.reveal} returns the value.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. */
  reveal(): string {
    return this.#value;
  }

  /** A mask. */
  toString(): string {
    return SECRET_MASK;
  }

  /** A mask. */
  toJSON(): string {
    return SECRET_MASK;
  }

  /** A mask, for Node's `util.inspect`. */
  [INSPECT](): string {
    return SECRET_MASK;
  }
}

function maskClientSecret(this: Record<string, unknown>): Record<string, unknown> {
  return "client_secret" in this ? { ...this, client_secret: this["client_secret"] == null ? null : MASK } : this;
}
const MASKING_PROTOTYPE = Object.defineProperties(Object.create(Object.prototype) as object, {
  toJSON: { value: maskClientSecret },
  [INSPECT]: { value: maskClientSecret },
});

/**
 * Makes a plain object that holds a `client_secret` print and serialise with the secret masked. The property itself
 * stays as it is, so that a program can read it by name.
 *
 * @returns the same object
 */
export function hideClientSecret<T extends object>(holder: T): T {
  return Object.setPrototypeOf(holder, MASKING_PROTOTYPE) as T;
}

// Controls, the invisible and default-ignorable characters, separators that break a line, blanks that are not U+0020
// and unassigned code points: everything that moves, hides or reorders the text beside it.
const makeUnsafe = () =>
  /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800\u{1d159}]|[^\S ]|(?:(?!\p{Default_Ignorable_Code_Point})\p{M}){9,}/gu;
// Presentation selectors are invisible too, but they belong to the emoji that they follow.
const makeEmojiSelector = () => /(?!\p{Cn})\p{Extended_Pictographic}\ufe0f$/u;
// Where a joiner changes what one sees (UAX 31, rules A1, A2 and B, as UTS 39 section 3.1.1 has them): between letters of cursive
// scripts of which the first joins to its left, after a virama of an Indic script, and in a sequence of emoji.
const makeJoiner = () =>
  /(?<=(?![\u0621-\u0625\u0627\u0629\u062f-\u0632\u0648\u0671-\u0677\u0688-\u0699\u06c0\u06c3-\u06cb\u06cd\u06cf\u06d2\u06d3\u06d5\u06e5\u06e6\u06ee\u06ef\u0710\u0715-\u0719\u071e\u0728\u072a\u072c\u072f\u074d\u0759-\u075b\u076b\u076c\u0771\u0773\u0774\u0778\u0779\u07f4\u07f5\u07fa\u0840\u0846\u0847\u0849\u0854\u0856-\u0858\u0861\u0866\u0867\u0869\u086a\u0870-\u0885\u0887\u088e\u08aa-\u08ae\u08b1\u08b2\u08b9\u08c9\u1880-\u1884\ua873\ufb50-\ufefc\u{10d22}\u{1e94b}\u{1ee00}-\u{1eebb}])(?=\p{L})[\p{sc=Arab}\p{sc=Syrc}\p{sc=Nkoo}\p{sc=Mong}\p{sc=Mand}\p{sc=Phag}\p{sc=Adlm}\p{sc=Rohg}]\p{M}{0,8})\u200c(?=\p{M}{0,8}(?=\p{L})[\p{sc=Arab}\p{sc=Syrc}\p{sc=Nkoo}\p{sc=Mong}\p{sc=Mand}\p{sc=Phag}\p{sc=Adlm}\p{sc=Rohg}])|(?<=\p{L}\p{M}{0,8}[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u1039\u103a\u17d2\u1b44\ua9c0])(?:\u200c(?=\p{L})|\u200d)|(?<=\p{Emoji_Presentation}|\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d(?=(?!\p{Cn})\p{Extended_Pictographic})/uy;
// Reading a pattern of Unicode properties takes milliseconds, which a run that prints plain ASCII saves.
let unsafe: RegExp | undefined;
let emojiSelector: RegExp | undefined;
let joiner: RegExp | undefined;
const SAFE_ASCII = /^[\x20-\x7e]*$/;
const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\u001b": "\\e" };

/**
 * The one escaping function for text that a user sees: control characters, escape sequences, bidirectional and
 * invisible code points come out as visible escapes such as `\e`, `\n` or `\u{202e}`, on one line.
 *
 * Joiners that a script or a sequence of emoji needs stay as they are.
 *
 * A run of more than eight combining marks is replaced by its length, because it would paint over its neighbours.
 */
export function escapeText(text: string): string {
  if (SAFE_ASCII.test(text)) return text;
  unsafe ??= makeUnsafe();
  return text.replace(unsafe, (found, offset: number) => {
    if (found.length > 2) return `${[...found].slice(0, 4).join("")}\\u{+${[...found].length - 4} marks}`;
    if (found === "\ufe0f") {
      emojiSelector ??= makeEmojiSelector();
      if (emojiSelector.test(text.slice(Math.max(0, offset - 2), offset + 1))) return found;
    }
    if (found === "\u200c" || found === "\u200d") {
      joiner ??= makeJoiner();
      joiner.lastIndex = offset;
      if (joiner.test(text)) return found;
    }
    return NAMED[found] ?? `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

const HTML_ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" } as const;

/** {@link escapeText} for the text of a page or an attribute in quotes. */
export function escapeHtml(text: string): string {
  return escapeText(text).replace(/[&<>"']/g, (character) => HTML_ENTITIES[character as keyof typeof HTML_ENTITIES]);
}

// Up to the last "@": a password may have one too.
const USER_INFO = /(\/\/)[^/?#\s]+@/g;

/**
 * {@link escapeText}, cut to `max` characters with an ellipsis, and without the user name and password of an address.
 * For values quoted in messages.
 */
export function quote(value: unknown, max = 200): string {
  const given = typeof value === "string" ? value : (safeJson(value) ?? typeof value);
  const text = given.replace(USER_INFO, `$1${MASK}@`);
  const begin = wholeCharacters(text, max * 2);
  const escaped = escapeText(begin);
  const shown = wholeCharacters(escaped, max);
  const isCut = begin.length < text.length || shown.length < escaped.length;
  return `"${shown}${isCut ? "…" : ""}"`;
}

/** At most `max` code units, without the half of a surrogate pair at the end. */
export function wholeCharacters(text: string, max: number): string {
  return text.length > max ? text.slice(0, max).replace(/[\ud800-\udbff]$/, "") : text;
}

/** Undefined where JSON has no form for it, or where it is nested too deep to be walked. */
function safeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

const SECRET_SHAPES: readonly [RegExp, string][] = [
  [/\b(authorization["']?\s*[:=]\s*["']?(?:bearer|basic|dpop)\s+)[\w\-.~+/]+=*/gi, `$1${MASK}`],
  // Not before a word, such as in "Basic authentication". The value of the flag --dpop is no secret: a hint shows it.
  [
    /\b([Bb]earer|BEARER|[Bb]asic|BASIC|(?<!--)(?:dpop|DPoP|DPOP))(\s+)(?![A-Z]?[a-z]+(?:[_-][a-z]+)*\.?(?![\w\-.~+/]))[\w\-.~+/]{6,}=*/g,
    `$1$2${MASK}`,
  ],
  [
    /("(?:access_token|refresh_token|id_token|client_secret|code_verifier|assertion|subject_token|actor_token)"\s*:\s*")(?:[^"\\]|\\.)*/g,
    `$1${MASK}`,
  ],
  [
    /\b((?:access_token|refresh_token|id_token|client_secret|code|code_verifier|assertion|subject_token|actor_token)=)[^&\s"']+/g,
    `$1${MASK}`,
  ],
  // Begins where a run of base64url begins, and nowhere inside it: else a long run takes quadratic time.
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, MASK],
  [USER_INFO, `$1${MASK}@`],
];

/** Masks secrets in text: the values that were added, and whatever has the shape of a secret. */
export class Redactor {
  readonly #values = new Set<string>();

  /** Remembers a value that must never be shown. Values under six characters are masked by their shape only. */
  add(value: string): void {
    if (value.length >= 6) this.#values.add(value);
  }

  /** The text with every known secret masked: for user data, in which the shape of a secret proves nothing. */
  redactKnown(text: string): string {
    let out = text;
    // The longest first: a value that begins another would leave the rest of it behind.
    for (const value of [...this.#values].sort((a, b) => b.length - a.length)) out = out.replaceAll(value, MASK);
    return out;
  }

  /** The text with every known and every recognised secret masked. */
  redact(text: string): string {
    let out = this.redactKnown(text);
    for (const [shape, mask] of SECRET_SHAPES) out = out.replace(shape, mask);
    return out;
  }

  [INSPECT](): string {
    return "Redactor {}";
  }
}

export type Shell = "sh" | "powershell" | "cmd";

/** Where commands of messages are pasted. What reads the environment sets it; other modules read it. */
export const pasting: {
  shell: Shell;
  caller?: { readonly name: string; readonly uid: number | undefined } | undefined;
} = { shell: "sh" };

/** A word of a command that a message shows, quoted for {@link pasting}. */
export function shellWord(word: string): string {
  return wordFor(pasting.shell, word);
}

export function wordFor(shell: Shell, word: string): string {
  if (shell === "sh") return posixWord(word);
  if (/^[\w+:./\\-][\w+=:./\\-]*$/.test(word)) return word;
  return shell === "cmd" ? cmdWord(word) : powershellWord(word);
}

/** In quotes of PowerShell its typographic quotes count as well. What messages escape goes through a subexpression. */
function powershellWord(word: string): string {
  if (escapeText(word) === word) return `'${word.replace(/['\u2018-\u201b]/g, "$&$&")}'`;
  const parts = [...word].map((character) => {
    if (escapeText(character) === character) return character.replace(/[`"$\u201c-\u201e]/, "`$&");
    return `$([char]::ConvertFromUtf32(0x${(character.codePointAt(0) ?? 0).toString(16)}))`;
  });
  return `"${parts.join("")}"`;
}

/** A caret outside the quotes keeps cmd.exe from reading a variable. It has no form for control characters. */
function cmdWord(word: string): string {
  const text = escapeText(word).replaceAll('"', '""').replaceAll("%", '"^%"');
  return `"${text}${/\\*$/.exec(text)?.[0] ?? ""}"`;
}

/** A word quoted for a POSIX shell. Invisible characters, which messages escape, go through printf. */
export function posixWord(word: string): string {
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)) return word;
  if (escapeText(word) === word) return `'${word.replaceAll("'", "'\\''")}'`;
  const format = word.replace(/./gsu, (character) => {
    if (character === "%") return "%%";
    if (/^[\\'\p{M}]$/u.test(character) || escapeText(character) !== character) return escapeOctal(character);
    return character;
  });
  // A leading "-" would be an option of printf's.
  return `"$(printf '${format.replace(/^-|["$`]/g, escapeOctal)}')"`;
}

function escapeOctal(character: string): string {
  return [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}
