import { describe, expect, it } from "vitest";
import { commandOf } from "../../../../src/cli/commands/exec/command-words.js";
import { parseTarget } from "../../../../src/cli/commands/exec/options.js";

const URL = "https://mcp.example/mcp";

describe("the words of the command", () => {
  it.each<[string, string[]]>([
    ["everything after the first --", ["make", "-j", "2", "test"]],
    ["flags that are ours too", ["agent", "--verbose", "--as", "x", "-q", "--help"]],
    ["another --", ["git", "log", "--", "file"]],
    ["words that a shell would read otherwise", ["echo", "$HOME", "*", "a b", "", "'"]],
  ])("%s", (_what, words) => {
    expect(commandOf({ url: URL, command: words }, ["exec", URL, "--", ...words])).toEqual(words);
  });

  it.each<[string, string[], string[], { message: string; hint: string }]>([
    [
      "no --",
      ["exec", "-v", URL, "make", "--jobs", "two words"],
      ["make", "--jobs", "two words"],
      {
        message: 'the command must follow "--"',
        hint: `agentauth exec -v ${URL} -- make --jobs 'two words'`,
      },
    ],
    ["no word at all", ["exec", URL], [], { message: "the command is missing", hint: expect.any(String) }],
    [
      "nothing after --",
      ["exec", URL, "--"],
      [],
      { message: 'there is no command after "--"', hint: expect.any(String) },
    ],
    [
      "a word before --",
      ["exec", URL, "x", "--", "y"],
      ["x", "y"],
      { message: 'unexpected argument "x" before "--"', hint: expect.any(String) },
    ],
    [
      "an empty word",
      ["exec", URL, "--", ""],
      [""],
      { message: "the command is an empty word", hint: expect.any(String) },
    ],
  ])("%s is a mistake that is reported", (_what, argv, command, reported) => {
    expect(() => commandOf({ url: URL, command }, argv)).toThrow(
      expect.objectContaining({ class: "usage", ...reported }),
    );
  });

  it("a command without an address before it is a mistake too", () => {
    expect(() => commandOf({ url: "make", command: [] }, ["exec", "--", "make"])).toThrow(
      'no MCP server is named before "--"',
    );
  });
});

describe("--as", () => {
  it.each([
    ["env:TOKEN", { kind: "env", name: "TOKEN" }],
    ["_my_token2", { kind: "env", name: "_my_token2" }],
    ["file:TOKEN_FILE", { kind: "file", name: "TOKEN_FILE" }],
    ["environment", { kind: "env", name: "environment" }],
  ])("%s", (value, place) => {
    expect(parseTarget(value)).toEqual(place);
  });

  it.each(["", "env", "file", "env:", "file:", "2x", "env:A=B", "env:A B", "header:X", "env:A\n", "env:\u00c4"])(
    "%j is none",
    (value) => {
      expect(parseTarget(value)).toBeUndefined();
    },
  );
});
