import { CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { cliHint } from "../../src/cli/runtime/hints.js";
import { usageErrorOf } from "../../src/cli/runtime/usage-error.js";
import { AgentAuthError, type ErrorClass } from "../../src/errors.js";
import { suggest } from "../../src/http/suggest.js";
import { fc } from "../helpers/properties.js";

const FORMATS = ["table", "wide", "plain", "json", "ndjson", "csv", "yaml", "id"];

describe("did you mean", () => {
  it.each([
    ["jsn", "json"],
    ["JSON", "json"],
    ["tabel", "table"],
    ["ymal", "yaml"],
    ["ndjsn", "ndjson"],
    ["plan", "plain"],
    ["xml", undefined],
    ["", undefined],
    ["zzzzzz", undefined],
  ])("%j: %s", (word, expected) => {
    expect(suggest(word, FORMATS)).toBe(expected);
  });

  it("gives one of the candidates or none, and a candidate for itself", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), (word, candidates) => {
        const found = suggest(word, candidates);
        expect(found === undefined || candidates.includes(found)).toBe(true);
        expect(suggest(candidates[0] ?? "", candidates)?.toLowerCase()).toBe(candidates[0]?.toLowerCase());
      }),
    );
  });
});

describe("what the parser complains about", () => {
  const said = (message: string, command?: string) => {
    const error = Object.assign(new CommanderError(1, "commander.x", message), command !== undefined && { command });
    const { message: text, hint } = usageErrorOf(error);
    return [text, hint];
  };

  it.each([
    [
      "error: option '--limit <n>' argument 'x' is invalid. must be a number",
      ['--limit "x" must be a number', "see agentauth devices list --help"],
    ],
    [
      "error: option '-o, --output <format>' argument 'jsn' is invalid. Allowed choices are table, json.",
      ['--output "jsn" must be one of table, json', "did you mean json?"],
    ],
    [
      "error: option '--limit <n>' argument 'it's\n' is invalid. y' is invalid. must be",
      ["--limit \"it's\\n' is invalid. y\" must be", "see agentauth devices list --help"],
    ],
    ["error: unknown option '--x'\n(Did you mean --y?)", ["unknown option '--x'", "did you mean --y?"]],
    [
      "error: missing required argument 'key'",
      ["missing required argument 'key'", "see agentauth devices list --help"],
    ],
  ])("%j", (message, expected) => {
    expect(said(message, "agentauth devices list")).toEqual(expected);
  });

  it("cuts a long value", () => {
    expect(
      said(`error: option '--limit <n>' argument '${"9".repeat(5000)}' is invalid. must be`)[0]?.length,
    ).toBeLessThan(150);
  });
});

describe("hints name what the command line has", () => {
  const hintOf = (code: string, kind: ErrorClass, hint?: string) =>
    cliHint(new AgentAuthError(code, "m", { class: kind, hint })).hint;

  it.each<[string, ErrorClass, RegExp]>([
    ["timeout", "unavailable", /--timeout/],
    ["proxy_failed", "unavailable", /NO_PROXY/],
    ["unexpected", "unavailable", /--retries/],
    ["list_changed", "refused", /--strict/],
  ])("%s", (code, kind, expected) => {
    expect(hintOf(code, kind)).toMatch(expected);
  });

  it.each<[string, ErrorClass, string]>([
    ["timeout", "partial", "continue with: agentauth devices list --offset 5"],
    ["login_required", "auth", "agentauth login https://mcp.example"],
    ["rate_limited", "unavailable", "call again later, or allow more time"],
    ["x", "remote", "constructor"],
  ])("%s of class %s keeps its own", (code, kind, hint) => {
    expect(hintOf(code, kind, hint)).toBe(hint);
  });

  it("none is made up where nothing helps", () => {
    expect(hintOf("bad_request", "remote")).toBeUndefined();
    expect(hintOf("constructor", "auth")).toBeUndefined();
    expect(hintOf("aborted", "aborted")).toBeUndefined();
  });
});
