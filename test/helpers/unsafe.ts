/** First and last code point of what no terminal should get raw, written out on its own, not by classes of Unicode. */
const UNSAFE: readonly (readonly [number, number])[] = [
  // C0 and DEL, C1.
  [0x00, 0x1f],
  [0x7f, 0x9f],
  // Blanks that are no space, separators of lines, the empty Braille cell.
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x2800, 0x2800],
  [0x3000, 0x3000],
  // Bidirectional controls.
  [0x061c, 0x061c],
  [0x200e, 0x200f],
  [0x202a, 0x202e],
  [0x2066, 0x2069],
  // Of no width: joiners, fillers, invisible operators, the byte order mark, annotations.
  [0xad, 0xad],
  [0x034f, 0x034f],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200d],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d159, 0x1d159],
  [0x1d173, 0x1d17a],
  // Selectors of variants, tags.
  [0xfe00, 0xfe0f],
  [0xe0000, 0xe0fff],
  // Lone surrogates, private use, no characters at all.
  [0xd800, 0xf8ff],
  [0xf0000, 0x10ffff],
  [0xfdd0, 0xfdef],
];

const EMOJI_SELECTOR = /\p{Extended_Pictographic}\ufe0f/gu;
const NO_CHARACTERS = Array.from({ length: 17 }, (_, plane) => [plane * 0x10000 + 0xfffe, plane * 0x10000 + 0xffff]);
const hex = (code: number | undefined) => `\\u{${(code ?? 0).toString(16)}}`;
const ANY_UNSAFE = new RegExp(
  `[${[...UNSAFE, ...NO_CHARACTERS].map(([first, last]) => `${hex(first)}-${hex(last)}`).join("")}]`,
  "gu",
);

/**
 * What a terminal would act on, hide or reorder in a text, each once, as `U+202E`; also a pile of more than eight marks.
 *
 * @param own what the program itself puts there: line breaks and, in some formats, tabs
 */
export function unsafeCharacters(text: string, own = "\n\t"): string[] {
  const unusual = text.match(/[^\n\x20-\x7e]+|\n/g)?.join("") ?? "";
  const raw = unusual.replace(EMOJI_SELECTOR, "").match(ANY_UNSAFE) ?? [];
  const found = [...new Set(raw)].filter((one) => !own.includes(one));
  const piles = /\p{M}{9,}/u.test(unusual) && /\p{M}{9,}/u.test(text) ? ["a pile of marks"] : [];
  return [...found.map((one) => `U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase()}`), ...piles];
}

/** The planes of Unicode in which there is more than letters, and the ends of the others. */
const isTelling = (code: number) =>
  code < 0x20000 || (code >= 0xe0000 && code < 0xe1000) || (code & 0xffff) < 0x100 || (code & 0xffff) >= 0xff00;

/** The characters of Unicode, so many to a text, with lone surrogates, piles of marks and escape sequences. */
export function everyText(size: number): string[] {
  const texts = [
    "\ud800 \udfff",
    `e${"\u0301".repeat(40)}x`,
    "\u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007",
  ];
  for (let start = 0; start <= 0x10ffff; start += size) {
    const codes = Array.from({ length: size }, (_, index) => start + index);
    texts.push(String.fromCodePoint(...codes.filter((code) => isTelling(code) && (code < 0xd800 || code > 0xdfff))));
  }
  return texts.filter((text) => text !== "");
}
