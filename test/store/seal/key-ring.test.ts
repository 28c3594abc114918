import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { aesGcm } from "../../../src/store/file/cipher.js";
import { keyRing } from "../../../src/store/seal/key-ring.js";
import { pendingError } from "../../helpers/captured.js";
import { key, NAME_KEY, testRing } from "./support.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("a key ring", () => {
  it("opens what it sealed, under the same name only", async () => {
    const ring = testRing();
    const sealed = await ring.seal("text ✓", "grant:p:1");
    expect(await ring.open(sealed, "grant:p:1")).toBe("text ✓");
    expect(await ring.seal("text ✓", "grant:p:1")).not.toBe(sealed);
    await expect(ring.open(sealed, "grant:p:2")).rejects.toThrow(/changed .*or another record/);
    const changed = sealed.replace(/(?<="data":")./, (first) => (first === "A" ? "B" : "A"));
    await expect(ring.open(changed, "grant:p:1")).rejects.toThrow();
  });

  it("writes and reads the texts of the stores in files", async () => {
    const cipher = aesGcm(key(1));
    const fromFile = await cipher.seal("text", "name");
    const id = JSON.parse(fromFile).key as string;
    const ring = testRing({ current: id, keys: { [id]: key(1) } });
    expect(await ring.open(fromFile, "name")).toBe("text");
    expect(await cipher.open(await ring.seal("text", "name"), "name")).toBe("text");
  });

  it("seals with the current key and opens with any", async () => {
    const old = await testRing().seal("old", "n");
    const keys = { a: hex(key(1)), b: Buffer.from(key(2)).toString("base64url") };
    const ring = testRing({ current: "b", keys });
    expect(await ring.open(old, "n")).toBe("old");
    expect(JSON.parse(await ring.seal("new", "n"))).toMatchObject({ key: "b", alg: "A256GCM" });
    const without = testRing({ current: "b", keys: { b: keys.b } });
    await expect(without.open(old, "n")).rejects.toThrow('the key "a", which is not in the key ring: that has "b"');
  });

  it("names alike in every process with its name key, and shows nothing", async () => {
    const name = await testRing().nameOf("https://mcp.example");
    expect(name).toMatch(/^[\w-]{43}$/);
    expect(await testRing({ keys: { a: key(3) } }).nameOf("https://mcp.example")).toBe(name);
    expect(await testRing({ nameKey: key(8) }).nameOf("https://mcp.example")).not.toBe(name);
  });

  it.each([
    ["plain text", "it is not valid JSON"],
    ['{"kind":"grant"}', "it is not sealed"],
    ['{"schema":2,"kind":"sealed"}', "its schema is"],
    ['{"schema":1,"kind":"sealed","alg":"none"}', "its alg is"],
    ['{"schema":1,"kind":"sealed","alg":"A256GCM"}', "its key is not named"],
    ['{"schema":1,"kind":"sealed","alg":"A256GCM","key":"a","nonce":"AA","data":"AA"}', "its nonce does not have"],
    ['{"schema":1,"kind":"sealed","alg":"A256GCM","key":"a","nonce":"AB","data":"AA"}', "its nonce is not base64url"],
    [
      '{"schema":1,"kind":"sealed","alg":"A256GCM","key":"a","nonce":"AAAAAAAAAAAAAAAA","data":"AA"}',
      "its data is cut",
    ],
  ])("opens nothing else: %s", async (text, message) => {
    expect(await pendingError(testRing().open(text, "n"))).toMatchObject({ name: "CipherError" });
    await expect(testRing().open(text, "n")).rejects.toThrow(message);
  });

  const FORM = "must have 32 bytes, as bytes, 64 hexadecimal digits or 43 characters of base64url";
  const MAKE = "make one with: openssl rand -hex 32";
  const ADD = "add the key to keys, or name another one";
  it.each<[object, string, string]>([
    [{ keys: { a: "short!" } }, `keys.a ${FORM}; it has 6 characters and is neither`, MAKE],
    [{ keys: { a: hex(key(1)).slice(2) } }, `keys.a ${FORM}; it has 62 characters and is neither`, MAKE],
    [{ keys: { a: `${hex(key(1))}0000` } }, `keys.a ${FORM}; it has 51 bytes`, MAKE],
    [{ keys: { a: new Uint8Array(31) } }, `keys.a ${FORM}; it has 31 bytes`, MAKE],
    [{ nameKey: undefined }, `nameKey ${FORM}; it is missing`, MAKE],
    [{ nameKey: 5 }, `nameKey ${FORM}; it is of the type number`, MAKE],
    [{ current: "b" }, 'current is "b", and keys has no key of this id: it has "a"', ADD],
    [
      { current: "c", keys: { a: key(1), b: key(2) } },
      'current is "c", and keys has no key of this id: it has "a", "b"',
      ADD,
    ],
    [{ keys: {} }, 'current is "a", and keys has no key of this id: it has none', ADD],
    [{ keys: undefined }, 'current is "a", and keys has no key of this id: it has none', ADD],
  ])("refuses options that are wrong, and shows no key: %o", (over, message, hint) => {
    const make = () => keyRing({ current: "a", keys: { a: key(1) }, nameKey: NAME_KEY, ...over } as never);
    expect(make).toThrow(expect.objectContaining({ code: "usage", message, hint }));
  });

  it.each([
    ["capital digits", hex(key(250)).toUpperCase()],
    ["base64url", Buffer.from(key(250)).toString("base64url")],
    ["base64url with its padding", `${Buffer.from(key(250)).toString("base64url")}=`],
  ])("reads a key in %s", async (_how, text) => {
    const sealed = await testRing({ keys: { a: key(250) } }).seal("text", "n");
    expect(await testRing({ keys: { a: text } }).open(sealed, "n")).toBe("text");
  });

  it("shows no key when it is printed", () => {
    const printed = inspect(testRing(), { depth: 10, showHidden: true });
    expect(printed).not.toContain("1, 1, 1");
  });
});
