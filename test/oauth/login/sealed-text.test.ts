import { describe, expect, it } from "vitest";
import { cookiePath } from "../../../src/oauth/login/web-app.js";
import { hashOfTexts, isSameText, openText, sealText } from "../../../src/oauth/login/web-login.js";
import { SECRET } from "./web-support.js";

describe("a sealed text", () => {
  it.each(["", "{}", "ü€😀".repeat(7000), "x".repeat(64 * 1024)])("is opened with the secret", async (text) => {
    expect(await openText(await sealText(text, SECRET), ["y".repeat(32), SECRET])).toBe(text);
  });

  it("is another one each time", async () => {
    const [one, other] = [await sealText("{}", SECRET), await sealText("{}", SECRET)];
    expect(one.slice(0, 16)).not.toBe(other.slice(0, 16));
  });

  it("is shorter than the text, where the text repeats itself", async () => {
    expect((await sealText("scope ".repeat(1000), SECRET)).length).toBeLessThan(200);
  });

  it.each([64 * 1024 + 1, 5 * 1024 * 1024])("that inflates to %i bytes is not opened", async (length) => {
    const sealed = await sealText("x".repeat(length), SECRET);
    expect(sealed.length).toBeLessThan(100_000);
    expect(await openText(sealed, [SECRET])).toBeUndefined();
  });
});

it.each([
  ["state", "state", true],
  ["state", "stat", false],
  ["stat", "state", false],
  ["state", "statf", false],
  ["", "state", false],
])("whether %j and %j are equal is %s", (one, other, expected) => {
  expect(isSameText(one, other)).toBe(expected);
});

it("the hash of texts depends on where each of them ends", async () => {
  const hashes = [await hashOfTexts("ab", "c"), await hashOfTexts("a", "bc"), await hashOfTexts("ab", undefined, "c")];
  expect(new Set(hashes).size).toBe(3);
});

describe("the path of a cookie", () => {
  it.each([
    ["https://app.example/oauth/callback?a=b", "/oauth/callback"],
    ["https://app.example", "/"],
    ["https://app.example/oauth/cb;v=1/x", "/oauth/"],
    ["https://app.example/;Domain=example", "/"],
    ["https://app.example/a/%3B", "/a/%3B"],
  ])("of %s is %s", (page, path) => {
    expect(cookiePath(page)).toBe(path);
  });
});
