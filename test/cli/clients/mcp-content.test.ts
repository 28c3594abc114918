import { expect, it } from "vitest";
import { readText } from "../../../src/cli/clients/http-error.js";

it.each<[string, unknown, string]>([
  [
    "texts, each from its own line",
    [{ type: "text", text: "a\nb" }, { type: "text", text: "" }, text("c")],
    "a\nb\n\nc\n",
  ],
  [
    "a word for what is no text",
    [{ type: "image", data: "AA==" }, { type: "text", text: 1 }, {}],
    "(image)\n(text)\n(undefined)\n",
  ],
  ["no text of another type", [{ type: "resource", text: "x" }], "(resource)\n"],
  ["what acts on a terminal, escaped", [text("\u001b[31m\u202e")], "\\e[31m\\u{202e}\n"],
  ["an empty line for no content", [], "\n"],
  ["an empty line for content that is no list", "text", "\n"],
])("a result has as text %s", (_what, content, expected) => {
  expect(readText({ content })).toBe(expected);
});

function text(value: string) {
  return { type: "text", text: value };
}
