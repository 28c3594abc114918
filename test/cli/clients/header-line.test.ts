import { expect, it } from "vitest";
import { checkHeaderValue, parseHeaderLine } from "../../../src/cli/clients/http-error.js";

it.each<[string, string, string]>([
  ["accept: text/plain", "accept", "text/plain"],
  ["x-a:b", "x-a", "b"],
  ["x-a: \t b c \t", "x-a", "b c"],
  ["x-a:", "x-a", ""],
  ["x-a: b: c", "x-a", "b: c"],
  ["x-a: \u00e9\t1", "x-a", "\u00e9\t1"],
])("the header %j has its name and its value", (line, name, value) => {
  expect(parseHeaderLine(line, "--header")).toEqual({ name, value });
});

const NO_HEADER = { hint: 'for example "Accept: text/plain"' };
const NO_VALUE = { hint: "remove line breaks and control characters" };

it.each<[string, string, object]>([
  ["a-secret", '--header is not "name: value"', NO_HEADER],
  ["two words-secret", '--header "two" is not "name: value"', NO_HEADER],
  ["a b: secret", '--header "a" is not "name: value"', NO_HEADER],
  [": secret", '--header "" is not "name: value"', NO_HEADER],
  ["", '--header is not "name: value"', NO_HEADER],
  [`${"n".repeat(50)}\u00e9: secret`, `--header "${"n".repeat(40)}…" is not "name: value"`, NO_HEADER],
  ["x-a: secret\r\nx-b: c", '--header "x-a" has a character that is not allowed in a header value', NO_VALUE],
  ["x-a: \u20ac secret", '--header "x-a" has a character that is not allowed in a header value', NO_VALUE],
])("the header %j is refused without what may be a secret", (line, message, hint) => {
  expect(() => parseHeaderLine(line, "--header")).toThrow(expect.objectContaining({ code: "usage", message, ...hint }));
});

it("a value of another source is checked as well", () => {
  expect(checkHeaderValue("a", "line 1")).toBeUndefined();
  expect(() => checkHeaderValue("a\u0000", "line 1")).toThrow("line 1 has a character that is not allowed");
});
