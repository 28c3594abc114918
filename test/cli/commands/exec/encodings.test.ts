import { describe, expect, it } from "vitest";
import { encodingsOf, tokenEncodings } from "../../../../src/cli/commands/exec/encodings.js";
import { createMasker } from "../../../../src/cli/commands/exec/masker.js";
import { MASK } from "../../../../src/redact.js";
import { fc } from "../../../helpers/properties.js";

const TOKEN = "ab/cd+ef==gh~ij\"kl\\mn'op";

function masked(token: string, text: string): string {
  const forms = tokenEncodings();
  forms.add(token);
  const masker = createMasker(forms.all);
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
    expect(masked(TOKEN, `<${text}>`)).toBe(`<${MASK}>`);
  });

  const token = fc.string({ unit: fc.constantFrom(..."eyJhbGciOi.-_~+/="), minLength: 8, maxLength: 60 });
  const around = fc.string({ unit: fc.constantFrom(..."user: token;"), maxLength: 9 });

  it("in base64 and base64url wherever it is in what was encoded", () => {
    fc.assert(
      fc.property(token, around, around, fc.constantFrom("base64", "base64url"), (secret, before, after, encoding) => {
        const out = masked(secret, Buffer.from(`${before}${secret}${after}`).toString(encoding));
        expect(out).toContain(MASK);
        // At most a character at either side has bits of the token's first or last byte, beside those of a neighbour.
        const own = Math.ceil((Buffer.byteLength(before) * 8) / 6) + Math.ceil((Buffer.byteLength(after) * 8) / 6) + 4;
        expect(out.replace(MASK, "").length).toBeLessThanOrEqual(own);
      }),
    );
  });
});

it("looks for nothing so short that it is found everywhere", () => {
  expect(encodingsOf("abc")).toEqual([]);
  for (const form of encodingsOf("abcdef")) expect(form.length).toBeGreaterThanOrEqual(6);
});

it("looks for the last eight tokens of a long run", () => {
  const forms = tokenEncodings();
  for (let n = 1; n <= 9; n++) forms.add(`token-number-${n}`);
  const texts = forms.all().map(String);
  expect(texts).not.toContain("token-number-1");
  for (let n = 2; n <= 9; n++) expect(texts).toContain(`token-number-${n}`);
});
