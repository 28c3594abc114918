import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { aesGcm } from "../../../src/store/file/cipher.js";
import { keyRing } from "../../../src/store/seal/key-ring.js";
import { heldError } from "../../helpers/told.js";
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
    expect(await heldError(testRing().open(text, "n"))).toMatchObject({ name: "CipherError" });
    await expect(testRing().open(text, "n")).rejects.toThrow(message);
  });

  it.each([
    [{ keys: { a: "short" } }, /keys\.a must have 32 bytes/],
    [{ keys: { a: new Uint8Array(31) } }, /keys\.a .* it has 31 bytes/],
    [{ nameKey: undefined }, /nameKey .* it is missing/],
    [{ nameKey: 5 }, /nameKey .* it is of the type number$/],
    [{ current: "b" }, /current is "b".* it has "a"/],
  ])("refuses options that are wrong, and shows no key: %o", (over, message) => {
    const make = () => keyRing({ current: "a", keys: { a: key(1) }, nameKey: NAME_KEY, ...over } as never);
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ code: "usage", message: expect.not.stringContaining("short") }));
  });

  it("shows no key when it is printed", () => {
    const printed = inspect(testRing(), { depth: 10, showHidden: true });
    expect(printed).not.toContain("1, 1, 1");
  });
});
