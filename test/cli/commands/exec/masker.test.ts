import { describe, expect, it } from "vitest";
import { createMasker, listEncodings } from "../../../../src/cli/commands/exec/child.js";
import { MASK } from "../../../../src/redact.js";
import { fc } from "../../../helpers/properties.js";

/** One character a byte, so that bytes that are no text can be compared as text. */
const bytes = (text: string) => Buffer.from(text, "latin1");

function masked(secrets: readonly string[], chunks: readonly string[]): string {
  const list = secrets.map(bytes);
  const masker = createMasker(list);
  return Buffer.concat([...chunks.map((chunk) => masker.push(bytes(chunk))), masker.end()]).toString("latin1");
}

/** The same on the whole: leftmost first, of several at one place the longest. */
function expected(secrets: readonly string[], text: string): string {
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  const pattern = longestFirst.map((secret) => secret.replace(/[^a-z]/g, (c) => `\\x${hex(c)}`)).join("|");
  return text.replace(new RegExp(pattern, "gs"), MASK);
}

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, "0");

// Few letters, so that secrets overlap one another and their own beginnings.
const few = (length: { minLength: number; maxLength: number }) =>
  fc.string({ unit: fc.constantFrom("a", "b", "\xff", "\n"), ...length });
const anySecrets = fc.uniqueArray(few({ minLength: 1, maxLength: 7 }), { minLength: 1, maxLength: 4 });

/** Chunks of a text that has whole, cut and doubled secrets in it. */
const anyOutput = anySecrets.chain((secrets) => {
  const piece = fc.oneof(few({ minLength: 0, maxLength: 9 }), fc.constantFrom(...secrets));
  return fc.tuple(fc.constant(secrets), fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(12), { maxLength: 40 }));
});

function cut(text: string, sizes: readonly number[]): string[] {
  const chunks: string[] = [];
  let from = 0;
  for (const size of sizes) {
    chunks.push(text.slice(from, from + size));
    from += size;
  }
  return [...chunks, text.slice(from)];
}

describe("however the output is cut into pieces", () => {
  it("it comes out as if it had been masked as a whole", () => {
    fc.assert(
      fc.property(anyOutput, ([secrets, pieces, sizes]) => {
        const text = pieces.join("");
        expect(masked(secrets, cut(text, sizes))).toBe(expected(secrets, text));
      }),
      { numRuns: 2000 },
    );
  });

  it("no secret is in it, and every other byte is", () => {
    const any = fc.tuple(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 12 }), fc.nat(12), fc.nat(12));
    fc.assert(
      fc.property(any, ([noise, where, sizes]) => {
        const secret = "s3cret-token";
        const before = noise.slice(0, where).map((part) => Buffer.from(part).toString("latin1"));
        const after = noise.slice(where).map((part) => Buffer.from(part).toString("latin1"));
        const text = [...before, secret, ...after].join("");
        const out = masked([secret], cut(text, new Array<number>(40).fill(sizes)));
        expect(out).toBe([...before, MASK, ...after].join(""));
      }),
    );
  });

  it("never more is held back than the longest secret less a byte, and only what begins one", () => {
    fc.assert(
      fc.property(anyOutput, ([secrets, pieces, sizes]) => {
        const list = secrets.map(bytes);
        const masker = createMasker(list);
        let seen = "";
        let out = "";
        for (const chunk of cut(pieces.join(""), sizes)) {
          seen += chunk;
          out += masker.push(bytes(chunk)).toString("latin1");
          const held = heldBack(secrets, seen, out);
          expect(held === "" || secrets.some((one) => one.length > held.length && one.startsWith(held))).toBe(true);
        }
      }),
    );
  });

  /** What is missing in the output so far: the end that, masked as the rest, would complete it. */
  function heldBack(secrets: readonly string[], seen: string, out: string): string {
    for (let length = 0; length <= seen.length; length++) {
      const decided = seen.slice(0, seen.length - length);
      if (expected(secrets, decided) === out) return seen.slice(seen.length - length);
    }
    throw new Error("the output is of another text");
  }
});

describe("what is not the beginning of a secret", () => {
  it("leaves at once", () => {
    const masker = createMasker([bytes("eyJhbGci")]);
    expect(masker.push(bytes("Password? ")).toString()).toBe("Password? ");
    expect(masker.push(bytes("ok ey")).toString()).toBe("ok ");
    expect(masker.push(bytes("e")).toString()).toBe("ey");
    expect(masker.end().toString()).toBe("e");
  });

  it("is not changed where it was held back in vain until the end", () => {
    expect(masked(["token-1"], ["token", "-"])).toBe("token-");
  });
});

it("passes everything on where there is no secret", () => {
  expect(masked([], ["a", "", "b"])).toBe("ab");
});

const TOKEN = "ab/cd+ef==gh~ij\"kl\\mn'op";

function maskedForms(token: string, text: string): string {
  const masker = createMasker(listEncodings(token).map((form) => Buffer.from(form)));
  return Buffer.concat([masker.push(Buffer.from(text)), masker.end()]).toString();
}

describe("a token is recognised", () => {
  it.each<[string, string]>([
    ["as it is", TOKEN],
    ["in an address", encodeURIComponent(TOKEN)],
    ["in an address with small letters", encodeURIComponent(TOKEN).replace(/%../g, (code) => code.toLowerCase())],
    ["in an address where the slash stays", encodeURIComponent(TOKEN).replaceAll("%2F", "/")],
    ["in a form", new URLSearchParams({ t: TOKEN }).toString().slice(2)],
    ["in JSON", JSON.stringify(TOKEN).slice(1, -1)],
    ["in JSON with escaped slashes", JSON.stringify(TOKEN).slice(1, -1).replaceAll("/", "\\/")],
    ["in base64", Buffer.from(TOKEN).toString("base64")],
    ["in base64url", Buffer.from(TOKEN).toString("base64url")],
  ])("%s", (_where, text) => {
    expect(maskedForms(TOKEN, `<${text}>`)).toBe(`<${MASK}>`);
  });

  const token = fc.string({ unit: fc.constantFrom(..."eyJhbGciOi.-_~+/="), minLength: 8, maxLength: 60 });
  const around = fc.string({ unit: fc.constantFrom(..."user: token;"), maxLength: 9 });

  it("in base64 and base64url wherever it is in what was encoded", () => {
    fc.assert(
      fc.property(token, around, around, fc.constantFrom("base64", "base64url"), (secret, before, after, encoding) => {
        const out = maskedForms(secret, Buffer.from(`${before}${secret}${after}`).toString(encoding));
        expect(out).toContain(MASK);
        // At most a character at either side has bits of the token's first or last byte, beside those of a neighbour.
        const own = Math.ceil((Buffer.byteLength(before) * 8) / 6) + Math.ceil((Buffer.byteLength(after) * 8) / 6) + 4;
        expect(out.replace(MASK, "").length).toBeLessThanOrEqual(own);
      }),
    );
  });
});

it("looks for nothing so short that it is found everywhere", () => {
  expect([listEncodings("abc"), listEncodings("abcde"), listEncodings("abcdef")[0]]).toEqual([[], [], "abcdef"]);
  for (const form of listEncodings("abcdef")) expect(form.length).toBeGreaterThanOrEqual(6);
});
