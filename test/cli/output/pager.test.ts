import { EventEmitter, once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect } from "vitest";
import { heldMessages, type PagerFlags, withPager } from "../../../src/cli/output/pager.js";
import { processSignals } from "../../../src/cli/runtime/signals.js";
import { benchTest } from "../../helpers/bench-test.js";
import { allIds, collect, linesOf, runCli, startCli, temporaryFolder, until } from "../../helpers/cli.js";
import { createMemoryIo, type MemoryIoOptions } from "../../helpers/memory-io.js";
import { startRun } from "../run-support.js";

const it = benchTest()
  .extend("args", ({ bench }) => [...bench.devices, "-o", "id"])
  .extend("env", ({ bench }) => ({ NO_COLOR: "1", TERM: "xterm", LINES: "10", ...bench.env }))
  .extend("run", ({ args, env }) => {
    return (variables: Record<string, string>, ...more: string[]) =>
      runCli([...args, ...more], { env: { ...env, ...variables }, tty: { stdin: true, stdout: true }, columns: 100 });
  });

/** A pager of the system's own tools, and the file that it copies its input to. */
function makePager(script = "") {
  const file = join(temporaryFolder(), "seen");
  return { command: `sh -c 'tee "$0"; ${script}' ${file}`, seen: () => readFileSync(file, "utf8") };
}

describe("the pager of output to a terminal", () => {
  it("gets the output, and what it prints is that of the run; messages come after it", async ({ bench, run }) => {
    const pager = makePager("echo the pager has ended");
    const { code, stdout, stderr } = await run({ AGENTAUTH_PAGER: pager.command }, "--limit", "50");
    expect([code, linesOf(pager.seen())]).toEqual([0, allIds(bench.sandbox).slice(0, 50)]);
    expect(stdout).toBe(`${pager.seen()}the pager has ended\n`);
    expect(stderr).toMatch(/shown 50 of 60; continue with: /);
  });

  it.for<[string, string[], Record<string, string>]>([
    ["--no-pager", ["--no-pager"], {}],
    ["--no-input", ["--no-input"], {}],
    ["AGENTAUTH_NO_INPUT", [], { AGENTAUTH_NO_INPUT: "1" }],
    ["CI", [], { CI: "true" }],
    ["TERM=dumb", [], { TERM: "dumb" }],
    ["-o ndjson", ["-o", "ndjson", "--jq", ".id"], {}],
    ["an empty AGENTAUTH_PAGER", [], { AGENTAUTH_PAGER: "" }],
    ["AGENTAUTH_PAGER=cat", [], { AGENTAUTH_PAGER: "cat" }],
  ])("is not started with %s", async ([_what, flags, env], { bench, run }) => {
    const { code, stdout } = await run({ PAGER: "false", ...env }, ...flags);
    expect([code, linesOf(stdout)]).toEqual([0, allIds(bench.sandbox)]);
  });

  it("that does not exist, or is no command, is passed over", async ({ bench, run }) => {
    const missing = await run({ PAGER: "/nowhere/at-all --flag" }, "--verbose");
    expect([missing.code, linesOf(missing.stdout)]).toEqual([0, allIds(bench.sandbox)]);
    expect(missing.stderr).toContain('the pager "/nowhere/at-all" cannot be started (ENOENT)');
    const unsplit = await run({ PAGER: "less 'x" });
    expect([unsplit.code, linesOf(unsplit.stdout)]).toEqual([0, allIds(bench.sandbox)]);
    expect(unsplit.stderr).toContain('warning: PAGER "less \'x" is not a valid command; printing without a pager');
  });

  it("that fails is reported, with its exit code", async ({ run }) => {
    const { code, stderr } = await run({ PAGER: makePager("exit 3").command });
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('the pager "sh" ended with exit code 3; --no-pager prints without one'),
    ]);
  });

  it("that the user quits early ends the list: exit 0, no message", async ({ bench, run }) => {
    bench.sandbox.faults.add({ kind: "slow-headers", ms: 60_000, after: 3, path: "device", times: 0 });
    const few = ["--page-size", "10", "--concurrency", "1"];
    const { code, stderr } = await run({ PAGER: "head -n 1" }, ...few);
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("is waited for where the list ends early, and the error comes after it", async ({ bench, run }) => {
    bench.sandbox.faults.add({ kind: "status", status: 503, after: 3, path: "device", times: 0 });
    const pager = makePager("echo the pager has ended");
    const few = ["--page-size", "10", "--concurrency", "1", "--retries", "0"];
    const { code, stdout, stderr } = await run({ PAGER: pager.command }, ...few);
    expect([code, linesOf(pager.seen()).length]).toEqual([7, 30]);
    expect(stdout).toContain("the pager has ended");
    expect(stderr).toMatch(/error: .*HTTP 503/);
  });

  it.for([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("is waited for after %s, which ends the list with %i", async ([name, expected], { bench, args, env }) => {
    bench.sandbox.faults.add({ kind: "slow-headers", ms: 60_000, after: 3, path: "device", times: 0 });
    const pager = makePager();
    const child = startCli([...args, "--page-size", "10", "--concurrency", "1"], {
      env: { ...env, PAGER: pager.command },
      tty: true,
      columns: 100,
    });
    const ended = once(child, "close");
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    await until(() => linesOf(out()).length >= 30 || child.exitCode !== null);
    child.kill(name);
    expect(await ended).toEqual([expected, null]);
    expect(err()).toContain(`error: ended by ${name}`);
  });
});

async function setUp(options: MemoryIoOptions = {}) {
  const io = createMemoryIo({ env: { NO_COLOR: "1" }, ...options });
  const held = heldMessages(io);
  const talk = (name: string) => {
    held.io.say(`${name} say`);
    held.io.verbose(`${name} verbose`);
    held.io.warn(`${name} warn`);
  };
  return { io, held, talk, reported: () => io.err().split("\n").slice(0, -1) };
}

describe("messages", () => {
  it("are printed at once where nothing holds them", async () => {
    const { talk, reported } = await setUp({ verbose: true });
    talk("a");
    expect(reported()).toEqual(["a say", "a verbose", "warning: a warn"]);
  });

  it("wait while they are held, in their order, and then are printed once", async () => {
    const { talk, reported, held } = await setUp({ verbose: true });
    held.hold();
    talk("a");
    expect(reported()).toEqual([]);
    held.hold();
    talk("b");
    expect(reported()).toEqual([]);
    held.release();
    held.release();
    talk("c");
    expect(reported()).toEqual([
      "a say",
      "a verbose",
      "warning: a warn",
      "b say",
      "b verbose",
      "warning: b warn",
      "c say",
      "c verbose",
      "warning: c warn",
    ]);
  });

  it("that were not requested are not printed later either", async () => {
    const { held, reported } = await setUp();
    held.hold();
    held.io.verbose("a step");
    held.release();
    expect(reported()).toEqual([]);
  });

  it("stay hushed by quiet", async () => {
    const { talk, reported, held } = await setUp({ quiet: true });
    held.hold();
    talk("a");
    held.release();
    expect(reported()).toEqual(["warning: a warn"]);
  });

  it("leave progress on the terminal only while they are not held", async () => {
    const { io, held } = await setUp({ tty: true });
    const progress = held.io.progress();
    progress.update("one");
    held.hold();
    progress.update("two");
    held.io.progress().update("three");
    expect(io.err()).toContain("one");
    expect(io.err()).not.toMatch(/two|three/);
  });

  it("come from an io that is the same in all else", async () => {
    const { io, held } = await setUp({ stdin: "typed", env: { A: "b" } });
    expect([held.io.stdout, held.io.stderr, held.io.env, held.io.settings]).toEqual([
      io.stdout,
      io.stderr,
      io.env,
      io.settings,
    ]);
    expect(await held.io.stdin.text()).toBe("typed");
    held.io.with({ quiet: true }).say("nothing");
    expect(io.err()).toBe("");
  });
});

/** A run on a terminal whose outputs are files that the pager inherits. */
async function page(
  env: Record<string, string>,
  work: (say: (text: string) => Promise<void>, signal: AbortSignal) => Promise<void>,
  flags: Partial<PagerFlags> = {},
) {
  const folder = temporaryFolder();
  const [out, err] = ["out", "err"].map((name) => join(folder, name));
  const stream = (path = "") => Object.assign(new PassThrough(), { fd: openSync(path, "w") });
  const [stdout, stderr] = [stream(out), stream(err)];
  let releases = 0;
  const all = { PATH: process.env["PATH"], TERM: "xterm", NO_COLOR: "1", ...env };
  const own = { stdin: new PassThrough(), stdout, stderr, env: { ...all, AGENTAUTH_API_TOKEN: "a-secret" } };
  const acquireProcess = () => ({
    ...own,
    release: () => void releases++,
    exit: () => {
      throw new Error("nothing exits here");
    },
  });
  const signals = processSignals(new EventEmitter());
  const { context, io } = startRun({ tty: true, env: all }, {}, { acquireProcess, signals });
  await withPager(context, { format: "table", ...flags }, ({ io: paged, signal }) =>
    work((text) => paged.stdout.write(text), signal),
  );
  const read = (path = "") => readFileSync(path, "utf8");
  return { pager: { out: read(out), err: read(err) }, out: io.out(), err: io.err(), releases };
}

describe("the process of the pager", () => {
  const PAGER = `sh -c 'cat; echo "$LESS $LESSCHARSET $AGENTAUTH_API_TOKEN."; echo to stderr >&2'`;

  it.for([
    ["table", "FRX"],
    ["wide", "RSX"],
  ] as const)("has our files, the settings of less, and none of our secrets (%s)", async ([format, less]) => {
    const result = await page({ PAGER }, (say) => say("text\n"), { format });
    expect(result).toEqual({
      ...{ pager: { out: `text\n${less} utf-8 .\n`, err: "to stderr\n" }, out: "", err: "", releases: 1 },
    });
  });

  it("keeps the settings that the user has for less", async () => {
    const { pager } = await page({ PAGER, LESS: "X", LESSCHARSET: "latin1" }, (say) => say("text\n"));
    expect(pager.out).toBe("text\nX latin1 .\n");
  });

  it("is less where no variable names one, and AGENTAUTH_PAGER before PAGER", async () => {
    const own = { AGENTAUTH_PAGER: "sh -c 'cat; echo own'", PAGER: "false" };
    expect((await page(own, (say) => say("a\n"))).pager.out).toBe("a\nown\n");
    const missing = await page({ PATH: "/nowhere", AGENTAUTH_LOG: "info" }, (say) => say("a\n"));
    expect(missing).toMatchObject({ out: "a\n", releases: 1 });
  });

  it("is not started for no text, nor without a terminal for the input", async () => {
    const none = await page({ PAGER }, (say) => say(""));
    expect(none).toEqual({ pager: { out: "", err: "" }, out: "", err: "", releases: 0 });
    for (const flags of [{ pager: false }, { input: false }, { format: "ndjson" }] as const) {
      expect(await page({ PAGER }, (say) => say("a\n"), flags)).toMatchObject({ out: "a\n", releases: 0 });
    }
    for (const env of [{ CI: "1" }, { TERM: "dumb" }, { AGENTAUTH_NO_INPUT: "1" }]) {
      expect(await page({ PAGER, ...env }, (say) => say("a\n"))).toMatchObject({ out: "a\n", releases: 0 });
    }
    expect(await page({ PAGER, CI: "false" }, (say) => say("a\n"))).toMatchObject({ out: "", releases: 1 });
  });

  it.for([
    ["cat", "a\n", 1],
    ["", "a\n", 1],
    ["cat -", "", 1],
    ["sh -c cat", "", 1],
  ] as const)("is none for the command %j: %j", async ([command, out, releases]) => {
    expect(await page({ PAGER: "false", AGENTAUTH_PAGER: command }, (say) => say("a\n"))).toMatchObject({
      out,
      releases,
    });
  });

  it("that the user quits ends the work, whatever the work makes of that", async () => {
    const quitting = page({ PAGER: "true" }, async (say, signal) => {
      await say("a\n").catch(() => {});
      if (!signal.aborted) await once(signal, "abort");
      throw new Error("the work failed");
    });
    await expect(quitting).rejects.toMatchObject({ name: "PipeClosed", message: "the user quit the pager" });
  });

  it("gets the failure of the work after it has ended", async () => {
    const failure = new Error("the work failed");
    const failing = page({ PAGER }, async (say) => {
      await say("a\n");
      throw failure;
    });
    await expect(failing).rejects.toBe(failure);
  });
});
