import { afterEach, describe, expect, it, vi } from "vitest";

/** The functions, as in a runtime with or without the class of Node. */
async function load(hasBuffer: boolean) {
  vi.resetModules();
  if (!hasBuffer) vi.stubGlobal("Buffer", undefined);
  return import("../../src/http/base64url.js");
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

describe.each([true, false])("base64url, where Buffer is there: %s", (hasBuffer) => {
  it("is what RFC 4648 says, without padding", async () => {
    const { toBase64url, fromBase64url } = await load(hasBuffer);
    const bytes = Uint8Array.of(0, 0xfb, 0xef, 0xff, 0x10, 0x83, 1);
    for (let length = 1; length <= bytes.length; length++) {
      const some = bytes.subarray(1, 1 + length);
      const text = toBase64url(some);
      expect(text).toMatch(/^[\w-]+$/);
      expect(fromBase64url(text)).toEqual(new Uint8Array(some));
    }
    expect(toBase64url(bytes)).toBe("APvv_xCDAQ");
  });

  it("is nothing else: no padding, no other alphabet, no spare bits, no cut text", async () => {
    const { fromBase64url } = await load(hasBuffer);
    for (const text of ["", "AQ==", "AP+v", "AP/v", "AR", "AAB", "A", "AAAAA", "A A", "AAAA\n", "ä"]) {
      expect(fromBase64url(text), text).toBeUndefined();
    }
  });
});
