import { describe, expect, it } from "vitest";
import { isLoopbackHost, parseBaseUrl, parseUrl, percentDecoded } from "../../src/http/address.js";

describe("a loopback host", () => {
  it.each(
    `
    localhost app.localhost localhost. app.localhost. 127.0.0.1 127.255.0.9 [::1] [::ffff:7f00:1]
    [::ffff:7fff:ffff]
  `
      .trim()
      .split(/\s+/),
  )("is %s", (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  });

  it.each([
    "localhost.example",
    "127.0.0.1.example",
    "x127.0.0.1",
    "128.0.0.1",
    "127.0.0",
    "[::]",
    "[::2]",
    "0.0.0.0",
    "[::ffff:0:0]",
    "[::ffff:8000:1]",
    "[::ffff:7f0:1]",
    "xlocalhost",
    "",
  ])("is not %s", (host) => {
    expect(isLoopbackHost(host)).toBe(false);
  });
});

describe("a base address", () => {
  it.each([
    ["https://agentauth.example", "https://agentauth.example"],
    ["https://agentauth.example/", "https://agentauth.example"],
    ["HTTPS://AgentAuth.Example:443/base//", "https://agentauth.example/base"],
    ["http://127.0.0.1:8080/", "http://127.0.0.1:8080"],
    ["http://[::1]:8080", "http://[::1]:8080"],
    ["http://localhost", "http://localhost"],
    ["http://0x7f.1/", "http://127.0.0.1"],
  ])("%s is read as %s", (value, expected) => {
    expect(parseBaseUrl(value, "baseUrl")).toBe(expected);
  });

  it.each([
    ["", "absolute URL"],
    ["agentauth.example", 'has no scheme; did you mean "https://agentauth.example"?'],
    ["localhost:3000", 'did you mean "https://localhost:3000" or "http://localhost:3000"?'],
    ["agentauth:8443/api", 'has no scheme; did you mean "https://agentauth:8443/api"?'],
    ["[::1]:3000", 'did you mean "https://[::1]:3000" or "http://[::1]:3000"?'],
    ["Localhost/mcp", 'did you mean "https://Localhost/mcp" or "http://Localhost/mcp"?'],
    ["x agentauth.example", "absolute URL"],
    ["agentauth.example x", "absolute URL"],
    ["agentauth", "absolute URL"],
    ["/api", "absolute URL"],
    ["ftp://agentauth.example", "must begin with https://"],
    ["javascript:alert(1)", "must begin with https://"],
    ["http://agentauth.example", "loopback addresses only"],
    ["http://127.0.0.1.example", "loopback addresses only"],
    ["https://agentauth.example/?a=1", "query or a fragment"],
    ["https://agentauth.example/#a", "query or a fragment"],
  ])("%j is refused with the field, the value and the rule", (value, rule) => {
    expect(() => parseBaseUrl(value, "base_url")).toThrow(TypeError);
    expect(() => parseBaseUrl(value, "base_url")).toThrow(`base_url "${value}" `);
    expect(() => parseBaseUrl(value, "base_url")).toThrow(rule);
  });

  it.each([
    "https://user:hunter22@agentauth.example",
    "http://hunter22@agentauth.example",
    "ftp://user:hunter22@agentauth.example/?a",
  ])("%s is refused without showing what is before the @", (value) => {
    expect(() => parseBaseUrl(value, "baseUrl")).toThrow(
      /^(?!.*hunter22).*baseUrl must not contain a user name or password/,
    );
  });

  it("shows a hostile value escaped", () => {
    expect(() => parseBaseUrl("\u001b[31m\u202e", "baseUrl")).toThrow(String.raw`"\e[31m\u{202e}"`);
  });
});

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
