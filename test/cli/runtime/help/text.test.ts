import { describe, expect, it } from "vitest";
import {
  commandLine,
  describeMore,
  fill,
  formatRows,
  readHelpText,
  wrapProse,
} from "../../../../src/cli/runtime/help.js";

describe("text that is filled", () => {
  it.each<[string, number, number, string[]]>([
    ["", 10, 2, [""]],
    ["one two", 7, 2, ["one two"]],
    ["one two", 6, 2, ["one", "  two"]],
    ["  one two three", 7, 4, ["  one", "    two", "    three"]],
    ["  one two", 9, 4, ["  one two"]],
    ["a longest-of-all b", 5, 0, ["a", "longest-of-all", "b"]],
    ["one  two", 10, 0, ["one  two"]],
    ["one ", 10, 0, ["one "]],
  ])("%j in %i columns, the rest by %i", (text, width, hang, lines) => {
    expect(fill(text, width, hang)).toEqual(lines);
  });

  it("has no hang where none is named", () => {
    expect(fill("  one two", 5)).toEqual(["  one", "two"]);
  });
});

describe("rows", () => {
  const description = "what it does, in several words";

  it.each<[string, [string, string][], number, string[]]>([
    ["none", [], 80, []],
    [
      "side by side",
      [
        ["-a", "one"],
        ["--long", description],
      ],
      60,
      ["  -a      one", `  --long  ${description}`],
    ],
    [
      "broken beside their terms",
      [["-a", `${description} ${description}`]],
      40,
      [`  -a  ${description}`, `      ${description}`],
    ],
    ["below their terms in a narrow window", [["--abcdef", description]], 41, ["  --abcdef", `      ${description}`]],
    ["side by side in a window just wide enough", [["--abcdef", description]], 42, [`  --abcdef  ${description}`]],
    [
      "broken below their terms",
      [["--abcdef <x> <y>", description]],
      20,
      ["  --abcdef <x> <y>", "      what it does,", "      in several", "      words"],
    ],
    [
      "below a term that is too wide for a column",
      [
        ["-a", "one"],
        ["x".repeat(28), "two"],
        ["y".repeat(29), "three"],
      ],
      90,
      [`  -a${" ".repeat(28)}one`, `  ${"x".repeat(28)}  two`, `  ${"y".repeat(29)}`, `${" ".repeat(32)}three`],
    ],
    ["below a wide term alone", [["y".repeat(29), "three"]], 80, [`  ${"y".repeat(29)}`, "    three"]],
  ])("%s", (_what, rows, width, lines) => {
    expect(formatRows(rows, width)).toEqual(lines);
  });
});

describe("prose", () => {
  it.each<[string, string, number, string[]]>([
    ["joins the lines of a paragraph", "one two\nthree\n\nfour", 80, ["one two three", "", "four"]],
    ["breaks it at the width", "one two\nthree", 7, ["one two", "three"]],
    ["ends a paragraph at a colon", "these:\nnext one", 80, ["these:", "next one"]],
    ["leaves an indented line", "one\n  two three", 8, ["one", "  two", "    three"]],
    ["leaves columns", "one\nname  its meaning\nmore", 80, ["one", "name  its meaning", "more"]],
    ["breaks columns that have no indentation", "name  its meaning", 10, ["name", "      its", "      meaning"]],
    ["continues an indented line with a dash in it", "  a - bb cc", 9, ["  a - bb", "    cc"]],
    ["continues a point below its text", "  - one two three", 10, ["  - one", "    two", "    three"]],
    [
      "continues a row below its last column",
      `  name   ${"word ".repeat(8).trim()}`,
      39,
      [`  name   ${"word ".repeat(6).trim()}`, "         word word"],
    ],
    [
      "has a row below its name in a narrow window",
      `  name   ${"word ".repeat(6).trim()}`,
      30,
      ["  name", "      word word word word word", "      word"],
    ],
    ["leaves a short row in a narrow window", "  name   word", 13, ["  name   word"]],
    ["is empty", "", 80, [""]],
  ])("%s", (_what, text, width, lines) => {
    expect(wrapProse(text, width)).toEqual(lines);
  });
});

describe("a command line to paste", () => {
  it.each<[string, number, string[]]>([
    ["agentauth a b", 80, ["  $ agentauth a b"]],
    ["agentauth", 80, ["  $ agentauth"]],
    ["agentauth one two", 17, ["  $ agentauth \\", "      one two"]],
    ["agentauth one two", 21, ["  $ agentauth one two"]],
    ["agentauth one two", 20, ["  $ agentauth one \\", "      two"]],
    [
      `a --x '{"b": "c d"}' "e f" g'h i'j`,
      14,
      ["  $ a --x \\", `      '{"b": "c d"}' \\`, '      "e f" \\', "      g'h i'j"],
    ],
    ["", 80, ["  $ "]],
  ])("%j in %i columns", (command, width, lines) => {
    expect(commandLine(command, width)).toEqual(lines);
  });
});

it("the text of a command comes apart into prose and examples", () => {
  expect(readHelpText("\nOne.\n\n\n\nTwo.\n\nExamples:\n  $ a b\n  $ c\n   $ no\nExample:\n x $ no\n")).toEqual({
    text: "One.\n\nTwo.\n\n   $ no\n x $ no",
    examples: ["a b", "c"],
  });
  expect(readHelpText("The Examples: of x\nExample: y\n")).toEqual({
    text: "The Examples: of x\nExample: y",
    examples: [],
  });
  expect(describeMore({ more: "x" } as never) + describeMore({} as never)).toBe("x");
});
