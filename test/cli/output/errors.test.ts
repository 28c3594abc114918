import { describe, expect, it } from "vitest";
import { formatError, reportError } from "../../../src/cli/output/errors.js";
import { EXIT_CODE_MEANINGS, EXIT_CODES, exitCodeFor } from "../../../src/cli/runtime/exit-codes.js";
import { AgentAuthError, type ErrorClass } from "../../../src/errors.js";
import { Redactor } from "../../../src/redact.js";
import { createMemoryIo } from "../../helpers/memory-io.js";
import { everyText } from "../../helpers/unsafe.js";
import { hostileIn } from "./printing.js";

const plain = createMemoryIo().stderr.colors;
const report = (thrown: unknown, options: { json?: boolean; debug?: boolean; redactor?: Redactor } = {}) =>
  formatError(thrown, { json: false, colors: plain, redactor: new Redactor(), ...options });

const partial = new AgentAuthError("connection_reset", "the list ended early", {
  class: "partial",
  hint: "agentauth pools list --offset 40",
  status: 502,
  requestId: "req-1",
  url: "https://api.example/api/v1/pool",
  resume: 40,
  retryable: true,
});

describe("an error", () => {
  it("is what happened and what helps, for people", () => {
    expect(report(partial)).toBe(
      "error: the list ended early (request req-1)\nhint: agentauth pools list --offset 40\n",
    );
    expect(report(new AgentAuthError("usage", "no", { class: "usage" }))).toBe("error: no\n");
  });

  it("has a long hint in parts, a line each, and no command cut in two", () => {
    const command = `agentauth devices list --jq '.a; .b' --title "c; d" ${"x".repeat(200)}`;
    const text = (hint: string) => report(new AgentAuthError("usage", "no", { class: "usage", hint }));
    expect(text(`the issuer's way; ${command}; last`)).toBe(
      `error: no\nhint: the issuer's way\n      ${command}\n      last\n`,
    );
    expect(text("a; b")).toBe("error: no\nhint: a; b\n");
  });

  it("is coloured on a terminal only", () => {
    const { colors } = createMemoryIo({ tty: true }).stderr;
    const text = formatError(partial, { json: false, colors, redactor: new Redactor() });
    expect(text).toContain("\u001b[31merror:\u001b[39m the list");
    expect(text).toContain("\u001b[36mhint:\u001b[39m");
  });

  it("is one line of JSON for programs, absent fields left out", () => {
    expect(report(partial, { json: true })).toBe(
      '{"error":{"code":"connection_reset","class":"partial","message":"the list ended early",' +
        '"hint":"agentauth pools list --offset 40","retryable":true,"exit_code":7,"status":502,' +
        '"request_id":"req-1","url":"https://api.example/api/v1/pool","resume":40}}\n',
    );
    expect(
      Object.keys(JSON.parse(report(new AgentAuthError("usage", "no", { class: "usage" }), { json: true })).error),
    ).toEqual(["code", "class", "message", "retryable", "exit_code"]);
  });

  it("has the code that a signal decides, the request id, and the items that have no id", () => {
    const style = { json: true, colors: plain, redactor: new Redactor(), exitCode: 130 };
    const unusable = { count: 2, positions: [3, 4] };
    const error = new AgentAuthError("unusable_items", "m", {
      class: "partial",
      unusable,
      requestId: "r",
      status: 0,
      resume: 0,
    });
    expect(JSON.parse(formatError(error, style))).toEqual({
      error: {
        ...{ code: "unusable_items", class: "partial", message: "m", retryable: false, exit_code: 130 },
        ...{ status: 0, request_id: "r", resume: 0, unusable },
      },
    });
    expect(formatError(error, { ...style, json: false })).toBe("error: m (request r)\n");
  });

  it("has in its stack at most ten causes, each in its own dim lines", () => {
    const { colors } = createMemoryIo({ tty: true }).stderr;
    let error = new Error("cause 20");
    for (let nth = 19; nth >= 0; nth--) error = new Error(`cause ${nth}\nand more`, { cause: error });
    const text = formatError(error, { json: false, colors, redactor: new Redactor(), debug: true });
    expect(text.match(/caused by Error: cause \d+/g)).toEqual(
      Array.from({ length: 9 }, (_, nth) => `caused by Error: cause ${nth + 1}`),
    );
    const [, , ...stack] = text.trimEnd().split("\n");
    for (const line of stack) expect([line.slice(0, 4), line.slice(-5)]).toEqual(["\u001b[2m", "\u001b[22m"]);
    expect(text).not.toContain("caused by Error: cause 0");
    const bare = Object.assign(new Error("bare"), { stack: undefined });
    expect(report(bare, { debug: true })).toContain("\nError: bare\n");
  });

  it("is the same error where it is ours, and has another one as its cause", () => {
    const io = createMemoryIo();
    const style = { io, json: false, redactor: new Redactor() };
    expect(reportError(partial, style)).toBe(partial);
    const thrown = new Error("oops");
    expect(reportError(thrown, style)).toMatchObject({
      ...{ code: "internal_error", class: "internal", cause: thrown },
      hint: "run the command again with --debug to see where it happened",
    });
    expect(reportError("text", style).message).toBe("a bug in agentauth: text");
  });

  it("is one of usage where the working folder is gone, whatever needs it", () => {
    const thrown = Object.assign(new Error("ENOENT: no such file or directory, uv_cwd"), { syscall: "uv_cwd" });
    const style = { io: createMemoryIo(), json: false, redactor: new Redactor() };
    expect(reportError(thrown, style)).toMatchObject({ code: "usage", class: "usage", cause: thrown });
  });

  it.each([
    [new TypeError("x is not a function"), "TypeError: x is not a function"],
    ["thrown text", "thrown text"],
    [undefined, '"undefined"'],
    [null, '"null"'],
    [Object.create(null), '"{}"'],
    [{ toString: 1, toJSON: () => undefined }, '"object"'],
    [12n, '"bigint"'],
  ])("that is none of ours is a bug, without a stack (%#)", (thrown, said) => {
    expect(JSON.parse(report(thrown, { json: true }))).toEqual({
      error: {
        code: "internal_error",
        class: "internal",
        message: `a bug in agentauth: ${said}`,
        hint: expect.stringContaining("--debug"),
        retryable: false,
        exit_code: 1,
      },
    });
    expect(report(thrown)).not.toContain("    at ");
  });

  it("has its stack and its causes with --debug, also when they go in circles", () => {
    const cause = new Error("the socket");
    const circle = new AgentAuthError("network_failed", "no answer", { class: "unavailable", cause });
    cause.cause = circle;
    const text = report(circle, { debug: true });
    expect(text).toContain("    at ");
    expect(text).toContain("caused by Error: the socket");
  });

  it("never lets hostile text through raw", () => {
    const make = (text: string) =>
      new AgentAuthError(text, text, {
        class: "remote",
        hint: text,
        requestId: text,
        url: text,
        cause: new Error(text),
      });
    const everything = everyText(64).join("");
    for (const json of [false, true]) {
      expect(hostileIn(report(new Error(everything), { json }).replaceAll("\n", ""))).toEqual([]);
      const sample = report(make("\u001b[31m\u009b\u202e\u2028\u0000\r"), { json, debug: true });
      expect(hostileIn(sample.replaceAll("\n", ""))).toEqual([]);
    }
    expect(report(make("a\nb")).split("\n")).toHaveLength(3);
  });

  it("never shows a secret, wherever it is", () => {
    const redactor = new Redactor();
    redactor.add("planted-secret");
    const text = "x planted-secret Bearer abcdefgh12345";
    const error = new AgentAuthError(text, text, {
      class: "remote",
      hint: text,
      requestId: text,
      url: `https://user:planted-secret@host/?code=abcdefgh12345`,
      cause: new Error(text),
    });
    for (const json of [false, true]) {
      expect(report(error, { json, debug: true, redactor })).not.toMatch(/planted|abcdefgh12345/);
    }
  });

  it("is printed on stderr, and gives what decides the exit code", async () => {
    const io = createMemoryIo({ quiet: true });
    const error = reportError(new Error("oops"), { io, json: false, redactor: new Redactor() });
    await io.stderr.write("");
    expect(exitCodeFor(error.class)).toBe(1);
    expect([io.out(), io.err()]).toEqual([
      "",
      expect.stringMatching(/^error: a bug in agentauth: Error: oops\nhint: /),
    ]);
  });
});

describe("exit codes", () => {
  it("are those of the documented table", () => {
    expect(EXIT_CODES).toEqual({
      ok: 0,
      internal: 1,
      usage: 2,
      refused: 3,
      auth: 4,
      unavailable: 5,
      remote: 6,
      partial: 7,
      store: 8,
      hungUp: 129,
      aborted: 130,
      terminated: 143,
    });
    expect(Object.keys(EXIT_CODE_MEANINGS)).toEqual(Object.keys(EXIT_CODES));
  });

  it("take an unknown class for a bug", () => {
    expect(exitCodeFor("toString" as ErrorClass)).toBe(1);
    expect(exitCodeFor("partial")).toBe(7);
  });
});
