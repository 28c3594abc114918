import { expect, it } from "vitest";
import { parseUrl, percentDecoded } from "../../src/http/url.js";

it("reads a URL with an international host in optimised code too", () => {
  const hosts = Array.from({ length: 20_000 }, () => parseUrl("https://bücher.example/")?.host);
  expect(new Set(hosts)).toEqual(new Set(["xn--bcher-kva.example"]));
});

it("reads a URL relative to a base", () => {
  expect(parseUrl("../x", new URL("https://a.example/b/c/"))?.href).toBe("https://a.example/b/x");
});

it.each(["", "x", "https://", "https://a b", "/path", 7, undefined, null])("returns undefined for %j", (value) => {
  expect(parseUrl(value)).toBeUndefined();
});

it.each([
  ["p%3Aw%25", "p:w%"],
  ["b%C3%BCcher", "bücher"],
  ["%", "%"],
  ["100%zz%20", "100%zz "],
  ["%ff", "%ff"],
  ["%C3%BC%ff", "%C3%BC%ff"],
])("decodes %j to %j", (encoded, text) => {
  expect(percentDecoded(encoded)).toBe(text);
});
