import { describe, expect, it } from "vitest";
import { TokenMask } from "../../src/broker/token-mask.js";
import { Secret } from "../../src/redact.js";
import { fc } from "../helpers/properties.js";

const TOKEN = "eyJ0eXAi.a-b_c~d/e+f==";
const SHOWN = "*";

function maskOf(...tokens: string[]): TokenMask {
  const mask = new TokenMask();
  for (const [nth, token] of tokens.entries()) mask.add(`g${nth}`, new Secret(token));
  return mask;
}

async function masked(mask: TokenMask, parts: readonly string[]): Promise<string> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(Buffer.from(part, "latin1"));
      controller.close();
    },
  });
  return Buffer.from(await new Response(mask.over(body)).arrayBuffer()).toString("latin1");
}

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, "0");
/** How one character is written. */
const SPELLINGS: Record<string, (character: string) => string> = {
  "as it is": (character) => character,
  "in JSON": (character) => (character === "/" ? "\\/" : `\\u00${hex(character)}`),
  "in JSON, in upper case": (character) => `\\u00${hex(character).toUpperCase()}`,
  "in JSON within JSON": (character) => (character === "/" ? "\\\\\\/" : `\\\\u00${hex(character)}`),
  "in JSON within JSON within JSON": (character) => `\\\\\\\\u00${hex(character)}`,
  "with percent signs": (character) => `%${hex(character).toUpperCase()}`,
  "with percent signs twice": (character) => `%25${hex(character)}`,
  "as decimal entities": (character) => `&#${character.charCodeAt(0)};`,
  "as decimal entities with zeros, without an end": (character) =>
    `&#00${character.charCodeAt(0).toString().padStart(3, "0")}`,
  "as hexadecimal entities": (character) => `&#x${hex(character)};`,
  "as entities within entities": (character) => `&amp;#x${hex(character)};`,
  "as entities in JSON": (character) => `\\u0026#${character.charCodeAt(0)};`,
  "as percent signs in JSON": (character) => `\\u0025${hex(character)}`,
};
const ALL = Object.values(SPELLINGS);
const NAMED = "eyJ0eXAi&period;a-b&lowbar;c~d&sol;e&plus;f&equals;&equals;";

describe("a token", () => {
  it.each(Object.entries(SPELLINGS))(
    "is hidden %s, whole and in two parts wherever they meet",
    async (_what, spell) => {
      const mask = maskOf(TOKEN);
      const spelled = [...TOKEN].map(spell).join("");
      const text = `{"you sent":"${spelled}", "and":"${[...TOKEN].map((one, at) => (at % 3 === 1 ? spell(one) : one)).join("")}"}`;
      expect(mask.isIn(text)).toBe(true);
      const whole = await masked(mask, [text]);
      expect(whole).toMatch(/^\{"you sent":"\*+", "and":"\*+"\}$/);
      expect(whole).toHaveLength(text.length);
      for (let at = 1; at < text.length; at++)
        expect(await masked(mask, [text.slice(0, at), text.slice(at)])).toBe(whole);
      expect(await masked(mask, [...text])).toBe(whole);
    },
  );

  it("is hidden with the names of entities, and in other letters", async () => {
    const mask = maskOf(TOKEN);
    expect(await masked(mask, [`<b>${NAMED}</b>`])).toBe(`<b>${SHOWN.repeat(NAMED.length)}</b>`);
    expect(mask.isIn(TOKEN.toLowerCase())).toBe(true);
    expect(mask.isIn(TOKEN.toUpperCase())).toBe(true);
  });

  it("of any visible character is hidden as JSON and HTML write it", async () => {
    const token = [...Array(94).keys()].map((at) => String.fromCharCode(0x21 + at)).join("");
    const names =
      "amp& apos' lt< gt> quot\" colon: comma, commat@ dollar$ excl! grave` lbrace{ lcub{ lpar( lsqb[ UnderBar_ verbar|";
    const named = new Map(names.split(" ").map((entity) => [entity.slice(-1), `&${entity.slice(0, -1)};`]));
    const html = [...token].map((one) => named.get(one) ?? one).join("");
    for (const text of [JSON.stringify(token).slice(1, -1), JSON.stringify(JSON.stringify(token)).slice(3, -3), html])
      for (const parts of [[text], [...text]])
        expect(await masked(maskOf(token), parts)).toBe(SHOWN.repeat(text.length));
  });

  it("is hidden in any mixture of spellings and parts, and nothing else is", async () => {
    const other = fc.string({ unit: fc.constantFrom(...'eyJ0\\/%&;u"n {'.split("")), maxLength: 20 });
    const spelled = fc
      .array(fc.constantFrom(...ALL), { minLength: TOKEN.length, maxLength: TOKEN.length })
      .map((spells) => [...TOKEN].map((one, at) => spells[at]?.(one)).join(""));
    await fc.assert(
      fc.asyncProperty(spelled, fc.array(fc.nat(200), { maxLength: 6 }), async (text, cuts) => {
        const whole = `"${text}" `;
        const at = [...new Set(cuts.filter((cut) => cut < whole.length))].sort((a, b) => a - b);
        const parts = [0, ...at].map((from, nth) => whole.slice(from, at[nth] ?? whole.length));
        expect(await masked(maskOf(TOKEN), parts)).toMatch(/^"\*+" $/);
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(other), async (parts) => {
        expect(await masked(maskOf(TOKEN), parts)).toBe(parts.join(""));
      }),
    );
  });

  it.each(["data: 1\n\n", '{"a":1}', "a b", "AT&T is 100%!", '"C:\\\\dir"\n'])(
    "does not hold back %j",
    async (part) => {
      const mask = maskOf(TOKEN);
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const written = writable.getWriter().write(Buffer.from(part));
      const reader = mask.over(readable).getReader();
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(part);
      await written;
    },
  );

  it("is known for each grant that has sent it, the last eight of each", () => {
    const mask = new TokenMask();
    const add = (name: string, token: string) => mask.add(name, new Secret(token));
    add("a", "shared-token");
    add("b", "shared-token");
    for (let nth = 0; nth < 8; nth++) for (let twice = 0; twice < 2; twice++) add("a", `own-token-${nth}`);
    expect([mask.isIn("shared-token"), mask.isIn("own-token-0")]).toEqual([true, true]);
    add("b", "another");
    mask.keep(new Set(["a"]));
    expect([mask.isIn("shared-token"), mask.isIn("another"), mask.isIn("own-token-7")]).toEqual([false, false, true]);
  });

  it("may be shorter than those before", async () => {
    const mask = maskOf(TOKEN, "abc", "x");
    expect(await masked(mask, ["ab", `cx${TOKEN}`])).toBe(SHOWN.repeat(4 + TOKEN.length));
  });
});

it("a text costs the same whether there is one token or 20,000 that begin alike", async () => {
  const text = `${"eyJhbGciOiJSUzI1NiJ9.".repeat(20_000)}\n`;
  const tokens = (count: number) =>
    Array.from(
      { length: count },
      (_, nth) => `eyJhbGciOiJSUzI1NiJ9.${"a".repeat(300)}${(nth * 7919 + 1e9).toString(36)}`,
    );
  const msOf = async (mask: TokenMask) => {
    let least = Number.POSITIVE_INFINITY;
    for (let nth = 0; nth < 5; nth++) {
      const begun = performance.now();
      await masked(mask, [text, text]);
      least = Math.min(least, performance.now() - begun);
    }
    return least;
  };
  const one = await msOf(maskOf(...tokens(1)));
  expect(await msOf(maskOf(...tokens(20_000)))).toBeLessThan(10 * one + 5);
});
