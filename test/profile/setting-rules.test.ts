import { describe, expect, it } from "vitest";
import { collectRepeated } from "../../src/cli/flags/values.js";
import { readAuthorizeParam } from "../../src/profile/login-settings.js";
import { parseSeconds, shortText, wholeNumber } from "../../src/profile/setting-rules.js";

describe("a number of seconds", () => {
  it.each([
    ["1", 1],
    ["0.5", 0.5],
    [".5", 0.5],
    ["2.", 2],
    ["86400", 86_400],
  ])("%s", (text, expected) => {
    expect(parseSeconds(text)).toBe(expected);
  });

  it.each(["", "0", "0.0", "-1", "1e3", "x1", "1x", ".", "86400.1", "1.2.3", "Infinity"])("refuses %j", (text) => {
    expect(() => parseSeconds(text)).toThrow("must be a number of seconds above 0 and at most 86400");
  });
});

describe("a whole number", () => {
  it.each([
    ["2", 2],
    ["64", 64],
    ["007", 7],
  ])("%s", (text, expected) => {
    expect(wholeNumber(2, 64)(text)).toBe(expected);
    expect(wholeNumber(2)(text)).toBe(expected);
  });

  it.each(["", "1", "65", "-3", "2.5", "1e1", "x3", "3x", " 3", "9007199254740993"])("refuses %j", (text) => {
    expect(() => wholeNumber(2, 64)(text)).toThrow(/^must be a whole number of at least 2 and at most 64$/);
    if (text !== "65") expect(() => wholeNumber(2)(text)).toThrow(/^must be a whole number of at least 2$/);
  });
});

it("a text that others show is short, and has characters that are seen", () => {
  const parse = shortText(5);
  expect(["a", "abcde", "a b"].map(parse)).toEqual(["a", "abcde", "a b"]);
  for (const text of ["", "  ", "abcdef", "a\u001b", "a\u202e"])
    expect(() => parse(text)).toThrow(/^must be a text of 1 to 5 visible characters$/);
});

describe("a parameter of the authorization request", () => {
  it("is added to those before it", () => {
    expect(readAuthorizeParam("prompt=consent")).toEqual({ prompt: "consent" });
    expect(readAuthorizeParam("a=b=c", { prompt: "consent", a: "x" })).toEqual({ prompt: "consent", a: "b=c" });
    expect(readAuthorizeParam("a=", { b: "1" })).toEqual({ b: "1", a: "" });
  });

  it.each(["prompt", "=consent", ""])("refuses %j", (text) => {
    expect(() => readAuthorizeParam(text)).toThrow(/^must be name=value, or name= to leave the parameter out$/);
  });

  it.each(["client_id", "redirect_uri", "resource", "scope", "login_hint", "dpop_jkt", "state", "code_challenge"])(
    "refuses %s, with the flag for it where there is one",
    (name) => {
      expect(() => readAuthorizeParam(`${name}=x`)).toThrowErrorMatchingSnapshot();
    },
  );
});

it("a flag that may be repeated has all of its values", () => {
  expect([collectRepeated("a"), collectRepeated("b", ["a"])]).toEqual([["a"], ["a", "b"]]);
});
