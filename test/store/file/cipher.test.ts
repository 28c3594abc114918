import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { aesGcm, type Cipher, sealedWith } from "../../../src/store/file/cipher.js";
import { KEY_BYTES } from "../../../src/store/seal/key-ring.js";
import { CipherError } from "../../../src/store/seal/sealing.js";
import { fc } from "../../helpers/properties.js";

const KEY = new Uint8Array(KEY_BYTES).fill(7);
const NAME = "grant:0123456789012345678901234567890123456789";
const TEXT = '{"accessToken": "access-token-1"}\n';

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

type Members = Record<string, string | number>;

const seal = (text = TEXT, name = NAME) => aesGcm(KEY).seal(text, name) as string;
const membersOf = (sealed: string) => JSON.parse(sealed) as Members;

/** Why a text cannot be opened. */
function refusalOf(sealed: string, name = NAME, cipher: Cipher = aesGcm(KEY)): string {
  try {
    void cipher.open(sealed, name);
  } catch (error) {
    if (error instanceof CipherError) return error.message;
    throw error;
  }
  throw new Error("it was opened");
}

describe("a sealed text", () => {
  it("opens to what was sealed, whatever that was", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.string({ unit: "grapheme" }),
        fc.uint8Array({ minLength: KEY_BYTES, maxLength: KEY_BYTES }),
        (text, name, key) => aesGcm(key).open(aesGcm(key).seal(text, name) as string, name) === text,
      ),
    );
  });

  it("is one line of JSON that says how it was sealed", () => {
    expect(seal()).toMatch(/^\{.*\}\n$/);
    expect(membersOf(seal())).toEqual({
      schema: 1,
      kind: "sealed",
      alg: "A256GCM",
      key: "4bb06f8e",
      nonce: expect.stringMatching(/^[\w-]{16}$/),
      data: expect.stringMatching(/^[\w-]+$/),
    });
  });

  it("shows neither the text nor the key", () => {
    for (const form of ["utf8", "base64", "base64url", "hex"] as const) {
      expect(seal()).not.toContain(Buffer.from("access-token-1").toString(form).slice(0, 12));
      expect(seal()).not.toContain(Buffer.from(KEY).toString(form).slice(0, 12));
    }
  });

  it("has another nonce each time", () => {
    const nonces = Array.from({ length: 100 }, () => membersOf(seal())["nonce"]);
    expect(new Set(nonces).size).toBe(100);
  });

  it("opens under the name that it was sealed for, and under no other", () => {
    expect(refusalOf(seal(), "grant:other")).toMatch(/another file was put in its place/);
  });

  it("does not open once any character of nonce or data is another", () => {
    const sealed = seal();
    for (const name of ["nonce", "data"]) {
      const value = String(membersOf(sealed)[name]);
      for (let at = 0; at < value.length; at++) {
        // The next one in the alphabet: in the last place it can stand for the same bytes.
        const other = ALPHABET[ALPHABET.indexOf(value[at] ?? "") ^ 1];
        const changed = { ...membersOf(sealed), [name]: value.slice(0, at) + other + value.slice(at + 1) };
        expect(refusalOf(JSON.stringify(changed)), `${name} ${at}`).toMatch(/was changed|is not base64url/);
      }
    }
  });

  it("says that it was sealed with another key", () => {
    const other = aesGcm(new Uint8Array(KEY_BYTES).fill(8));
    expect(refusalOf(seal(), NAME, other)).toMatch(
      /^it was sealed with the key "4bb06f8e", and the keychain has the key "[\da-f]{8}": .*another machine.*lost$/,
    );
  });

  it.each<[string, Members | string, RegExp]>([
    ["that is no JSON", "{", /not valid JSON/],
    ["that is a list", "[]", /not a JSON object/],
    ["that is not sealed", { schema: 1, kind: "grant" }, /^it is not sealed$/],
    ["of a newer schema", { schema: 2 }, /schema is "2"/],
    ["of another algorithm", { alg: "none" }, /alg is "none".*opens "A256GCM"/],
    ["whose key is not named", { key: 7 }, /key is not named/],
    ["with a short nonce", { nonce: "AAAA" }, /nonce does not have 12 bytes/],
    ["with an empty nonce", { nonce: "" }, /nonce is not base64url/],
    ["with data that is cut to less than a tag", { data: "AAAA" }, /data is cut/],
    ["with data in another alphabet", { data: "++//" }, /data is not base64url/],
    ["with data that is no string", { data: 7 }, /data is not base64url/],
  ])("%s is refused with the reason", (_what, change, reason) => {
    const text = typeof change === "string" ? change : JSON.stringify({ ...membersOf(seal()), ...change });
    expect(refusalOf(text)).toMatch(reason);
  });

  it("shows nothing strange of a name for a key that is foreign", () => {
    expect(refusalOf(JSON.stringify({ ...membersOf(seal()), key: "\u001b[2J" }))).toContain('"\\e[2J"');
  });
});

describe("a cipher", () => {
  it("takes a key of 32 bytes and no other", () => {
    for (const length of [0, 16, 31, 33]) expect(() => aesGcm(new Uint8Array(length))).toThrow(TypeError);
  });

  it("shows nothing of its key", () => {
    const shown = inspect(aesGcm(KEY), { depth: 9, showHidden: true });
    expect(shown).not.toContain("7, 7");
    expect(shown).not.toContain("07070707");
  });
});

describe("the name of the key of a text", () => {
  it("is there for a sealed text", () => {
    expect(sealedWith(seal())).toBe("4bb06f8e");
  });

  it.each(["", "{", "[]", "null", '{"kind": "grant"}', "\u0000"])("is not there for %j", (text) => {
    expect(sealedWith(text)).toBeUndefined();
  });

  it("cannot be read from a text that was sealed and then broken", () => {
    expect(() => sealedWith('{"kind": "sealed"}')).toThrow(CipherError);
  });
});
