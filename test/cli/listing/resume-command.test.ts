import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { resumeCommand } from "../../../src/cli/listing/summary.js";
import { AgentAuthError, withHint } from "../../../src/errors.js";
import { escapeText, shellWord } from "../../../src/redact.js";
import { fc } from "../../helpers/properties.js";

/** The words that a shell makes of a command line. */
function shellSplit(line: string): string[] {
  const text = execFileSync("sh", ["-c", `set -f; for word in ${line}; do printf '%s\\0' "$word"; done`], {
    encoding: "utf8",
  });
  return text.split("\0").slice(0, -1);
}

describe("a word for the shell", () => {
  it.each([
    ["plain", "plain"],
    ["pool_1", "pool_1"],
    ["--page-size=5", "--page-size=5"],
    ["", "''"],
    ["two words", "'two words'"],
    ["it's", "'it'\\''s'"],
    ["$(rm -rf /)", "'$(rm -rf /)'"],
    ["*", "'*'"],
    ["=ls", "'=ls'"],
    ["~", "'~'"],
    ["été", "'été'"],
    ["a\u200cb", "\"$(printf 'a\\342\\200\\214b')\""],
  ])("%j is %s", (word, expected) => {
    expect(shellWord(word)).toBe(expected);
  });

  it("is read back by a real shell as it was", { timeout: 60_000 }, () => {
    const unit = fc.oneof(
      fc.constantFrom(
        ...["'", '"', "\\", "$", "`", "%", "!", "*", "~", "-", " ", "\n", "\t", "\u001b", "\u200c", "\u202e"],
        ...["\u00a0", "\u0301", "#", ";", "&", "é", "日", "🤖", "0"],
      ),
      fc.string({ minLength: 1, maxLength: 3, unit: "grapheme" }),
    );
    // A shell takes no NUL, and the line breaks at the end of what a command prints are not kept.
    const word = fc
      .array(unit, { maxLength: 12 })
      .map((parts) => parts.join("").replaceAll("\0", "").replace(/\n+$/, ""));
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 20 }), (words) => {
        expect(shellSplit(words.map(shellWord).join(" "))).toEqual(words);
      }),
      { numRuns: 60 },
    );
  });

  it("survives being shown", () => {
    const word = fc.string({ unit: "binary" });
    fc.assert(fc.property(word, (text) => /\p{Cs}/u.test(text) || escapeText(shellWord(text)) === shellWord(text)));
  });
});

describe("the command that continues", () => {
  it.each([
    [["devices", "list"], undefined, "agentauth devices list --offset 40"],
    [["devices", "list", "--limit", "50"], 10, "agentauth devices list --offset 40 --limit 10"],
    [["devices", "list", "--limit=50", "-o", "id"], 10, "agentauth devices list -o id --offset 40 --limit 10"],
    [
      ["--offset", "7", "devices", "list", "--pool", "p q"],
      undefined,
      "agentauth devices list --pool 'p q' --offset 40",
    ],
    [["devices", "--offset=7", "list"], undefined, "agentauth devices list --offset 40"],
  ])("of %j", (argv, limit, expected) => {
    expect(resumeCommand(argv, 40, limit)).toBe(expected);
  });
});

it("another hint leaves everything else of an error as it was", () => {
  const response = new Response("x");
  const cause = new Error("why");
  const details = {
    class: "partial",
    status: 503,
    requestId: "r",
    url: "https://x",
    resume: 7,
    retryAfter: 30,
    retryable: true,
    response,
    cause,
    hint: "old",
  } as const;
  const error = new AgentAuthError("unexpected", "message", details);
  const copy = withHint(error, "new");
  expect(copy.toJSON()).toEqual({ ...error.toJSON(), hint: "new" });
  expect([copy.response, copy.cause, copy.stack]).toEqual([response, cause, error.stack]);
});
