import { expect, it } from "vitest";
import { parseUrl } from "../../src/http/url.js";

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
