import { CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { cliHint } from "../../src/cli/runtime/hints.js";
import { toUsageError } from "../../src/cli/runtime/usage-error.js";
import { AgentAuthError, type ErrorClass } from "../../src/errors.js";

describe("what the parser complains about", () => {
  const said = (message: string, command?: string) => {
    const error = Object.assign(new CommanderError(1, "commander.x", message), command !== undefined && { command });
    const { message: text, hint } = toUsageError(error);
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
    ["error: unknown option '--lmit'\n(Did you mean --limit?)", ["unknown option '--lmit'", "did you mean --limit?"]],
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
