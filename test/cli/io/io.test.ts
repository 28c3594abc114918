import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, linkSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { createIo, type Io, PipeClosed, type ProcessLike } from "../../../src/cli/io/io.js";
import { fileDescriptor, readStream } from "../../../src/cli/io/stream.js";
import { hasHyperlinks, isAscii } from "../../../src/cli/io/terminal.js";
import { cutText, textWidth, wrap } from "../../../src/cli/io/width.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { createMemoryIo } from "../../helpers/memory-io.js";

function host(parts: Partial<ProcessLike> = {}): ProcessLike {
  const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
  return { stdin: Readable.from([]), stdout: nowhere(), stderr: nowhere(), env: {}, ...parts };
}

describe("the terminal is a setting", () => {
  it.each([
    [undefined, undefined, 80],
    [undefined, 120, 120],
    [undefined, 0, 80],
    ["100", 120, 100],
    ["0", 120, 120],
    ["0", undefined, 80],
    ["99999", undefined, 1000],
    ["1000", undefined, 1000],
    ["5", undefined, 20],
    ["20", undefined, 20],
    ["1e2", 90, 90],
    [undefined, 5000, 1000],
    ["-3", undefined, 80],
    ["wide", 90, 90],
    ["", 90, 90],
  ])("COLUMNS=%s on a terminal of %s columns is %i wide", (setting, columns, expected) => {
    const io = createMemoryIo({ tty: true, env: { COLUMNS: setting }, ...(columns !== undefined && { columns }) });
    expect(io.stdout.columns).toBe(expected);
  });

  it.each([
    [undefined, 24],
    ["50", 50],
    ["1", 2],
    ["2", 2],
    ["0", 24],
    ["tall", 24],
  ])("LINES=%s is %i lines high", (setting, expected) => {
    expect(createMemoryIo({ tty: true, env: { LINES: setting } }).stdout.rows).toBe(expected);
  });

  it.each([
    ["a terminal", true, {}, true],
    ["a pipe", false, {}, false],
    ["NO_COLOR", true, { NO_COLOR: "1" }, false],
    ["an empty NO_COLOR", true, { NO_COLOR: "" }, true],
    ["FORCE_COLOR in a pipe", false, { FORCE_COLOR: "1" }, true],
    ["FORCE_COLOR=0", true, { FORCE_COLOR: "0" }, false],
    ["FORCE_COLOR=false", true, { FORCE_COLOR: "false" }, false],
    ["an empty FORCE_COLOR", false, { FORCE_COLOR: "" }, false],
    ["FORCE_COLOR against TERM=dumb", true, { FORCE_COLOR: "1", TERM: "dumb" }, true],
    ["NO_COLOR against FORCE_COLOR", true, { NO_COLOR: "1", FORCE_COLOR: "1" }, false],
    ["TERM=dumb", true, { TERM: "dumb" }, false],
  ])("%s decides colour", (_what, tty, env, expected) => {
    expect(createMemoryIo({ tty, env }).stdout.colors.isColorSupported).toBe(expected);
  });

  it("decides colour for each stream on its own", () => {
    const io = createMemoryIo({ tty: { stderr: true } });
    expect([io.stdout.colors.isColorSupported, io.stderr.colors.isColorSupported]).toEqual([false, true]);
  });

  it("lets --no-color win over everything", () => {
    const io = createMemoryIo({ tty: true, env: { FORCE_COLOR: "1" } }).with({ color: false });
    expect(io.stdout.colors.isColorSupported).toBe(false);
  });

  it("takes an empty variable for unset", () => {
    expect(createMemoryIo({ env: { A: "", B: "b" } }).env).toEqual({ B: "b" });
  });
});

describe("what a terminal can show", () => {
  it.each<[Record<string, string>, boolean]>([
    [{}, false],
    [{ TERM: "dumb", LANG: "de_DE.UTF-8" }, true],
    [{ LANG: "C" }, true],
    [{ LANG: "POSIX" }, true],
    [{ LANG: "C.UTF-8" }, false],
    [{ LANG: "XPOSIX" }, false],
    [{ LANG: "Cc" }, false],
    [{ LANG: "de_DE.utf8" }, false],
    [{ LANG: "de_DE.ISO-8859-1" }, true],
    [{ LANG: "de_DE" }, false],
    [{ LC_CTYPE: "C", LANG: "de_DE.UTF-8" }, true],
    [{ LC_ALL: "de_DE.UTF-8", LC_CTYPE: "C", LANG: "C" }, false],
  ])("is only ASCII by %j: %s", (env, expected) => {
    expect(isAscii(env)).toBe(expected);
  });

  it.each<[Record<string, string>, boolean]>([
    [{}, false],
    [{ FORCE_HYPERLINK: "1" }, true],
    [{ FORCE_HYPERLINK: "1", TERM: "dumb" }, true],
    [{ FORCE_HYPERLINK: "0", TERM_PROGRAM: "vscode" }, false],
    [{ FORCE_HYPERLINK: "false", TERM_PROGRAM: "vscode" }, false],
    [{ TERM: "dumb", TERM_PROGRAM: "vscode" }, false],
    ...["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"].map(
      (TERM_PROGRAM): [Record<string, string>, boolean] => [{ TERM_PROGRAM }, true],
    ),
    [{ TERM_PROGRAM: "xvscode" }, false],
    [{ TERM_PROGRAM: "vscodes" }, false],
    ...["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "foot-extra", "contour"].map(
      (TERM): [Record<string, string>, boolean] => [{ TERM }, true],
    ),
    [{ TERM: "my-foot" }, false],
    [{ TERM: "xterm-256color" }, false],
    [{ VTE_VERSION: "5200" }, true],
    [{ VTE_VERSION: "5199" }, false],
    ...["WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"].map(
      (name): [Record<string, string>, boolean] => [{ [name]: "1" }, true],
    ),
  ])("has hyperlinks by %j: %s", (env, expected) => {
    expect(hasHyperlinks(env)).toBe(expected);
  });
});

describe("writing", () => {
  it("listens once to the errors of a stream, however often it is wrapped", () => {
    const stdout = new PassThrough();
    for (let time = 0; time < 3; time++) createIo(host({ stdout }));
    expect(stdout.listenerCount("error")).toBe(1);
  });

  it.each(["EPIPE", "ECONNRESET", "EOF", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END"])(
    "takes %s for a reader that has gone",
    async (code) => {
      const cause = Object.assign(new Error("gone"), { code });
      const stdout = new Writable({ write: (_chunk, _encoding, done) => done(cause) });
      const failure = await createIo(host({ stdout }))
        .stdout.write("x")
        .catch((error: unknown) => error);
      expect([String(failure), (failure as Error).cause]).toEqual(["PipeClosed: the reader closed the pipe", cause]);
    },
  );

  it("waits for a slow reader", async () => {
    const release: (() => void)[] = [];
    const stdout = new Writable({ write: (_chunk, _encoding, done) => void release.push(done) });
    const io = createIo(host({ stdout }));
    let written = false;
    const writing = io.stdout.write("x").then(() => {
      written = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(written).toBe(false);
    release[0]?.();
    await writing;
    expect(written).toBe(true);
  });

  it("rejects with PipeClosed when the reader of a real pipe has gone", async () => {
    const reader = spawn("true", [], { stdio: ["pipe", "ignore", "ignore"] });
    const io = createIo(host({ stdout: reader.stdin }));
    await once(reader, "exit");
    const flood = async () => {
      for (;;) await io.stdout.write("x".repeat(65_536));
    };
    await expect(flood()).rejects.toBeInstanceOf(PipeClosed);
  });

  it("reports another failure of the output as an error with the reason", async () => {
    const full = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    const stdout = new Writable({ write: (_chunk, _encoding, done) => done(full) });
    const failure = await createIo(host({ stdout }))
      .stdout.write("x")
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "store_failed",
      class: "store",
      message: "the output cannot be written: ENOSPC: no space left on device",
      hint: "check the disk or the device that the output goes to",
      cause: full,
    });
  });

  it("flushes what was said before when an empty text is written", async () => {
    const order: string[] = [];
    const stderr = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        setImmediate(() => {
          order.push(chunk.toString());
          done();
        });
      },
    });
    const io = createIo(host({ stderr }));
    io.say("hello");
    await io.stderr.write("");
    expect(order[0]).toBe("hello\n");
  });
});

describe("messages", () => {
  it("go to stderr, escaped line by line", async () => {
    const io = createMemoryIo();
    io.say("one \u001b[31m\ntwo \u202e");
    await io.stderr.write("");
    expect([io.out(), io.err()]).toEqual(["", "one \\e[31m\ntwo \\u{202e}\n"]);
  });

  it("are hushed by quiet, apart from warnings", async () => {
    const io = createMemoryIo({ quiet: true });
    io.say("said");
    io.verbose("step");
    io.warn("careful");
    await io.stderr.write("");
    expect(io.err()).toBe("warning: careful\n");
  });

  it("print the steps only with verbose", async () => {
    const io = createMemoryIo();
    io.verbose("before");
    io.with({ verbose: true }).verbose("after");
    await io.stderr.write("");
    expect(io.err()).toBe("after\n");
  });

  it("do not fail where stderr is closed", async () => {
    const stderr = new PassThrough();
    stderr.destroy();
    const io = createIo(host({ stderr }));
    io.warn("no reader");
    await new Promise((resolve) => setImmediate(resolve));
  });
});

describe("progress", () => {
  const shownBy = async (io: Io & { err(): string }) => {
    const progress = io.progress();
    progress.update("page 1");
    progress.stop();
    progress.update("late");
    await io.stderr.write("");
    return io.err();
  };

  it("is one line on the terminal, taken away at the end", async () => {
    expect(await shownBy(createMemoryIo({ tty: true }))).toBe("\r\u001b[2Kpage 1\r\u001b[2K");
  });

  it.each([
    ["in a pipe", { tty: { stdout: true } }],
    ["with quiet", { tty: true, quiet: true }],
    ["on a dumb terminal", { tty: true, env: { TERM: "dumb" } }],
  ])("is silent %s", async (_where, options) => {
    expect(await shownBy(createMemoryIo(options))).toBe("");
  });

  it("makes room for messages and for data on the same terminal", async () => {
    const io = createMemoryIo({ tty: true });
    const progress = io.progress();
    progress.update("page 1");
    io.say("note");
    await io.stderr.write("");
    progress.update("page 2");
    await io.stdout.write("data\n");
    progress.stop();
    await io.stderr.write("");
    const erase = "\r\u001b[2K";
    expect(io.err()).toContain(`${erase}page 1${erase}note\n`);
    expect(io.err().endsWith(`${erase}page 2${erase}`)).toBe(true);
    expect(io.out()).toBe("data\n");
  });

  it("is escaped and never wider than the terminal", async () => {
    const io = createMemoryIo({ tty: true, columns: 20 });
    io.progress().update(`\u001b]0;x\u0007${"日".repeat(30)}`);
    await io.stderr.write("");
    expect(io.err()).toBe("\r\u001b[2K\\e]0;x\\u{7}日日日…");
  });
});

describe("progress of text that is cut", () => {
  const shown = async (text: string, columns = 20) => {
    const io = createMemoryIo({ tty: true, columns });
    io.progress().update(text);
    await io.stderr.write("");
    return io.err().slice("\r\u001b[2K".length);
  };

  it.each([
    ["x".repeat(19), "x".repeat(19)],
    ["x".repeat(20), `${"x".repeat(18)}…`],
    ["é".repeat(9), "é".repeat(9)],
    ["é".repeat(10), `${"é".repeat(9)}…`],
    [`${"~ ".repeat(9)}~`, `${"~ ".repeat(9)}~`],
  ])("%j is %j", async (text, expected) => {
    expect(await shown(text)).toBe(expected);
  });

  it("comes back after a message, with the text of then, and not after its end", async () => {
    const io = createMemoryIo({ tty: true });
    const progress = io.progress();
    io.say("before");
    await new Promise((resolve) => setImmediate(resolve));
    progress.update("one");
    io.warn("between");
    await new Promise((resolve) => setImmediate(resolve));
    progress.stop();
    progress.stop();
    io.say("after");
    await new Promise((resolve) => setImmediate(resolve));
    const erase = "\r\u001b[2K";
    const warning = "\u001b[33mwarning: \u001b[39m";
    expect(io.err()).toBe(`before\n${erase}one${erase}${warning}between\n${erase}one${erase}after\n`);
  });

  it("leaves data in a pipe alone", async () => {
    const io = createMemoryIo({ tty: { stderr: true } });
    io.progress().update("one");
    await io.stdout.write("data\n");
    await io.stderr.write("");
    expect([io.out(), io.err()]).toEqual(["data\n", "\r\u001b[2Kone"]);
  });
});

describe("the file of an output", () => {
  it.each([
    [{ fd: 1 }, 1],
    [{ fd: "1" }, undefined],
    [{}, undefined],
  ])("of %j is %j", (stream, expected) => {
    expect(fileDescriptor(stream)).toBe(expected);
  });

  it("is its own where the messages go elsewhere", () => {
    const folder = temporaryFolder();
    const [path, other, link] = ["a", "b", "c"].map((name) => join(folder, name));
    for (const one of [path, other]) writeFileSync(one ?? "", "");
    linkSync(path ?? "", link ?? "");
    const opened: number[] = [];
    const at = (name: string | undefined) => {
      if (name === undefined) return new PassThrough();
      opened.push(openSync(name, "r"));
      return Object.assign(new PassThrough(), { fd: opened.at(-1) });
    };
    const isRedirected = (stdout: string | undefined, stderr: string | undefined) =>
      createIo(host({ stdout: at(stdout), stderr: at(stderr) })).isRedirected();
    expect(isRedirected(path, other)).toBe(true);
    expect(isRedirected(path, undefined)).toBe(true);
    expect(isRedirected(path, path)).toBe(false);
    expect(isRedirected(path, link)).toBe(false);
    expect(isRedirected(undefined, path)).toBe(false);
    expect(isRedirected("/dev/null", path)).toBe(false);
    for (const fd of opened) closeSync(fd);
  });
});

describe("a stream that is read whole", () => {
  const read = (stream: Readable, signal?: AbortSignal) =>
    readStream(stream, { maxBytes: 5, tooLong: () => new Error("too long"), signal });

  it("has texts and bytes, as many as are allowed", async () => {
    expect((await read(Readable.from(["ab", Buffer.from("cde")]))).toString()).toBe("abcde");
    await expect(read(Readable.from(["ab", "cdef"]))).rejects.toThrow("too long");
  });

  it("fails as it does, or with the reason of its signal, and leaves no listener", async () => {
    const failing = new PassThrough();
    const [controller, late] = [new AbortController(), new AbortController()];
    const reading = read(failing, late.signal);
    failing.destroy(new Error("broken"));
    await expect(reading).rejects.toThrow("broken");
    const stream = new PassThrough();
    const stopped = read(stream, controller.signal);
    controller.abort(new Error("enough"));
    await expect(stopped).rejects.toThrow("enough");
    await expect(read(Readable.from(["a"]), controller.signal)).rejects.toThrow("enough");
    expect(stream.destroyed).toBe(true);
    const other = new PassThrough();
    const read2 = read(other, late.signal);
    other.end("ok");
    expect((await read2).toString()).toBe("ok");
  });
});

describe("standard input", () => {
  it("is a terminal only where it says so", () => {
    expect([createIo(host()).stdin.isTTY, createMemoryIo({ tty: true }).stdin.isTTY]).toEqual([false, true]);
  });

  it("has no byte order mark, and is not UTF-16", async () => {
    expect(await createMemoryIo({ stdin: "\ufeffa" }).stdin.text()).toBe("a");
    const io = createIo(host({ stdin: Readable.from([Buffer.from("\ufeffa", "utf16le")]) }));
    await expect(io.stdin.text()).rejects.toMatchObject({ code: "usage", message: expect.stringContaining("stdin") });
  });
  it("is read to its end", async () => {
    expect(await createMemoryIo({ stdin: "grüße\n" }).stdin.text()).toBe("grüße\n");
  });

  it("keeps a character that two chunks share", async () => {
    const bytes = Buffer.from("é");
    const io = createIo(host({ stdin: Readable.from([bytes.subarray(0, 1), bytes.subarray(1)]) }));
    expect(await io.stdin.text()).toBe("é");
  });

  it("is refused beyond the cap", async () => {
    await expect(createMemoryIo({ stdin: "12345" }).stdin.text({ maxBytes: 4 })).rejects.toMatchObject({
      code: "usage",
      message: "standard input is longer than 4 bytes",
    });
    expect(await createMemoryIo({ stdin: "1234" }).stdin.text({ maxBytes: 4 })).toBe("1234");
    await expect(createMemoryIo({ stdin: "x".repeat(1_048_577) }).stdin.text()).rejects.toThrow("1048576 bytes");
  });

  it("is left by a signal", async () => {
    const controller = new AbortController();
    const reading = createIo(host({ stdin: new PassThrough() })).stdin.text({ signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
  });
});

it("agrees with string-width on every character below U+3000", () => {
  const texts = Array.from({ length: 0x2fe0 }, (_, at) => `x${String.fromCharCode(at + 0x20)}x`);
  expect(texts.filter((text) => textWidth(text) !== stringWidth(text))).toEqual([]);
});

it.each([
  ["Köln am Rhein", 6, "Köln …"],
  ["plain text", 10, "plain text"],
  ["plain text", 9, "plain te…"],
  ["plain text", 1, "…"],
  ["日本", 0, ""],
  ["日本", 1, "…"],
  ["日本", 3, "日…"],
  ["日本", 4, "日本"],
  ["plain text", 0, ""],
  ["日本語の文字", 6, "日本…"],
  ["e\u0301e\u0301e\u0301", 2, "e\u0301…"],
])("cuts %j to %i columns", (text, width, expected) => {
  expect(cutText(text, width)).toBe(expected);
});

it.each([
  ["", 5, [""]],
  ["one two three", 7, ["one two", "three"]],
  ["one two three", 6, ["one", "two", "three"]],
  ["longest of all", 3, ["longest", "of", "all"]],
  ["日本 語", 7, ["日本 語"]],
  ["日本 語", 6, ["日本", "語"]],
])("%j in %i columns has the lines %j", (text, width, lines) => {
  expect(wrap(text, width)).toEqual(lines);
});

it("measures as many texts as come", () => {
  const texts = Array.from({ length: 5000 }, (_, nth) => `日${nth}`);
  expect([...texts, ...texts].map(textWidth)).toEqual([...texts, ...texts].map((text) => text.length + 1));
});
