import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { canPrompt, mayLogin, once } from "../../../src/cli/runtime/context.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { startRun } from "../run-support.js";

describe("the context of a command", () => {
  it("reads its settings once, and again for another environment or other flags", () => {
    const { context } = startRun();
    const settings = context.settings();
    const { io } = context;
    expect(context.settings()).toBe(settings);
    expect(context.with({}).settings()).toBe(settings);
    expect(context.with({ io: { ...io }, argv: ["x"] }).settings()).toBe(settings);
    const env = { ...io.env, AGENTAUTH_BASE_URL: "https://env.example" };
    expect(context.with({ io: { ...io, env } }).settings().baseUrl?.value).toBe("https://env.example");
    const flags = { baseUrl: "https://flag.example" };
    expect(context.with({ flags }).settings().baseUrl).toEqual({ value: "https://flag.example", source: "--base-url" });
    const decided = { ...settings, pool: { value: "p", source: "decided" } };
    expect(context.with({ settings: decided, flags }).settings()).toBe(decided);
  });

  it("keeps its flags and the rest of the run where these are not changed", () => {
    const { context } = startRun({}, { login: true });
    const other = context.with({ argv: ["x"] });
    expect([other.mayLogin(), other.argv, other.io, other.redactor]).toEqual([
      true,
      ["x"],
      context.io,
      context.redactor,
    ]);
    expect(context.with({ flags: { login: false } }).mayLogin()).toBe(false);
  });

  it("has the folder, the store and the audit file that are chosen", async () => {
    const home = temporaryFolder();
    const { context } = startRun({ env: { AGENTAUTH_HOME: home, AGENTAUTH_STORE: "memory" } });
    expect([context.home(), context.storeChoice().value, context.audit()]).toEqual([home, "memory", undefined]);
    expect(await context.store()).toBe(await context.store());
    const audited = startRun({ env: { AGENTAUTH_AUDIT: `file:${join(home, "audit")}` } }).context;
    const write = audited.audit();
    expect([typeof write, audited.audit()]).toEqual(["function", write]);
    const lost = startRun({ env: { AGENTAUTH_AUDIT: `file:${join(home, "missing", "audit")}` } });
    const writeLost = lost.context.audit();
    rmSync(join(home, "missing"), { recursive: true });
    writeLost?.({ type: "store", outcome: "failed" } as never);
    expect(lost.io.err()).toContain("warning: ");
  });

  it("has no client for a service that is not configured", async () => {
    await expect(startRun().context.management()).rejects.toMatchObject({ code: "usage" });
  });
});

describe("whether the user may be asked", () => {
  it.each([
    [{}, {}, true],
    [{ input: true }, {}, true],
    [{ input: false }, {}, false],
    [{}, { AGENTAUTH_NO_INPUT: "1" }, false],
    [{}, { AGENTAUTH_NO_INPUT: "" }, true],
  ])("with %j and %j: %s", (flags, env, expected) => {
    expect(canPrompt(flags, { env })).toBe(expected);
  });

  const terminal = (stdin: boolean, stderr: boolean) => startRun({ tty: { stdin, stderr } }).context;
  it.each<[Parameters<typeof mayLogin>[0], boolean, boolean, Parameters<typeof mayLogin>[2], boolean]>([
    [{}, true, true, undefined, true],
    [{}, true, false, undefined, false],
    [{}, false, true, undefined, false],
    [{}, true, true, "never", false],
    [{}, false, false, "always", true],
    [{ grant: "jwt-bearer" }, true, true, "always", false],
    [{ login: false }, true, true, undefined, false],
    [{ login: false }, true, true, "always", true],
    [{ login: true }, false, false, undefined, true],
    [{ login: true, input: false }, true, true, undefined, false],
    [{ browser: "x" }, false, false, undefined, true],
    [{ browser: "none" }, false, false, undefined, false],
    [{ browser: "none" }, true, true, undefined, true],
  ])("to log in, with %j at %s and %s (%s): %s", (flags, stdin, stderr, when, expected) => {
    expect(mayLogin(flags, terminal(stdin, stderr), when)).toBe(expected);
  });
});

it("a value is built once, also one that is undefined", () => {
  let built = 0;
  const value = once(() => {
    built++;
  });
  expect([value(), value(), built]).toEqual([undefined, undefined, 1]);
});
