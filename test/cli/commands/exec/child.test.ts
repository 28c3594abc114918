import { EventEmitter } from "node:events";
import { closeSync, linkSync, openSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import {
  closeWriteEnds,
  createMasker,
  forwardSignals,
  isStartFailure,
  listEncodings,
  openStdio,
  passOutput,
  reportStartFailure,
} from "../../../../src/cli/commands/exec/child.js";
import { processSignals } from "../../../../src/cli/runtime/signals.js";
import { MASK } from "../../../../src/redact.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { fc } from "../../../helpers/properties.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { onSystem } from "../../../platform/support.js";
import { memoryContext } from "../request/support.js";

/** What is passed on to a child, and what ends the wait for readers. */
function forwarding(onTerminal: boolean) {
  const host = new EventEmitter();
  const passOn = vi.fn();
  const onTerminate = vi.fn();
  const release = forwardSignals(processSignals(host as never), onTerminal, { passOn, onTerminate });
  return { host, passOn, onTerminate, release };
}

describe("a console of Windows", () => {
  it.each(["SIGINT", "SIGBREAK", "SIGHUP"])("has sent %s to the child: passing it on would kill that", (signal) => {
    onSystem({ name: "win32" });
    const { host, passOn, onTerminate, release } = forwarding(false);
    host.emit(signal);
    expect(passOn).not.toHaveBeenCalled();
    expect(onTerminate).toHaveBeenCalledTimes(1);
    release();
    expect(host.eventNames()).toEqual([]);
  });
});

describe("another system", () => {
  it("passes a signal on, unless the terminal has sent it", () => {
    onSystem({ name: "linux" });
    const without = forwarding(false);
    without.host.emit("SIGINT");
    expect(without.passOn).toHaveBeenCalledWith("SIGINT");
    const { host, passOn } = forwarding(true);
    host.emit("SIGINT");
    expect(passOn).not.toHaveBeenCalled();
    host.emit("SIGTERM");
    expect(passOn).toHaveBeenCalledWith("SIGTERM");
  });
});

const KEYBOARD = ["SIGINT", "SIGQUIT"];
const TERMINATING = ["SIGTERM", "SIGHUP"];
const USER = ["SIGUSR1", "SIGUSR2"];
const JOB = ["SIGTSTP", "SIGCONT", "SIGWINCH"];

describe("the signals that reach a command", () => {
  it.each<["linux" | "win32", boolean, string[], string[], string[]]>([
    ["linux", false, [...KEYBOARD, ...TERMINATING, ...USER, ...JOB], [...KEYBOARD, ...TERMINATING], []],
    ["linux", true, [...TERMINATING, ...USER], [...KEYBOARD, ...TERMINATING], JOB],
    ["win32", false, [], ["SIGINT", "SIGBREAK", "SIGHUP", "SIGTERM"], ["SIGQUIT", ...USER, ...JOB]],
    ["win32", true, [], ["SIGINT", "SIGBREAK", "SIGHUP", "SIGTERM"], ["SIGQUIT", ...USER, ...JOB]],
  ])("on %s, on a terminal: %s", (name, onTerminal, passed, terminating, unheard) => {
    onSystem({ name });
    const kill = vi.spyOn(process, "kill").mockImplementation(() => true);
    const { host, passOn, onTerminate } = forwarding(onTerminal);
    for (const signal of [...KEYBOARD, ...TERMINATING, ...USER, ...JOB, "SIGBREAK"]) {
      const before = onTerminate.mock.calls.length;
      host.emit(signal);
      expect([signal, onTerminate.mock.calls.length - before]).toEqual([signal, terminating.includes(signal) ? 1 : 0]);
    }
    expect(passOn.mock.calls.flat().sort()).toEqual([...passed].sort());
    for (const signal of unheard) expect(host.listenerCount(signal)).toBe(0);
    expect(kill.mock.calls).toEqual(passed.includes("SIGTSTP") ? [[process.pid, "SIGSTOP"]] : []);
    kill.mockRestore();
  });
});

describe("a command that does not start", () => {
  it.each([
    ["ENOENT", 127],
    ["ENOTDIR", 127],
    ["EACCES", 126],
    ["EPERM", 126],
    ["ENOEXEC", 126],
    ["E2BIG", 125],
    [undefined, 125],
  ])("with %s ends with %i, and says why", async (code, exitCode) => {
    onSystem({ name: "linux" });
    const cause = Object.assign(new Error("spawn"), { code });
    const context = memoryContext();
    expect(await reportStartFailure("a \u001b", cause, context)).toBe(exitCode);
    expect(context.io.err()).toMatchSnapshot();
    for (const env of [{ AGENTAUTH_ERRORS: "json" }, { AGENTAUTH_AGENT: "1" }]) {
      const json = memoryContext({ env });
      await reportStartFailure("a", cause, json);
      expect(JSON.parse(json.io.err()).error).toMatchObject({ code: "usage", exit_code: exitCode });
    }
  });

  it.each<[unknown, boolean]>([
    [Object.assign(new Error("x"), { syscall: "spawn ls" }), true],
    [Object.assign(new Error("x"), { syscall: "spawn" }), true],
    [Object.assign(new Error("x"), { syscall: "spawning" }), false],
    [Object.assign(new Error("x"), { syscall: "kill spawn" }), false],
    [new Error("x"), false],
    [{ syscall: "spawn" }, false],
  ])("is told from another failure (%#)", (error, expected) => {
    expect(isStartFailure(error)).toBe(expected);
  });
});

/** One character a byte, so that bytes that are no text can be compared as text. */
const bytes = (text: string) => Buffer.from(text, "latin1");

function masked(secrets: readonly string[], chunks: readonly string[]): string {
  const list = secrets.map(bytes);
  const masker = createMasker(list);
  return Buffer.concat([...chunks.map((chunk) => masker.push(bytes(chunk))), masker.end()]).toString("latin1");
}

/** The same on the whole: leftmost first, of several at one place the longest. */
function expected(secrets: readonly string[], text: string): string {
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  const pattern = longestFirst.map((secret) => secret.replace(/[^a-z]/g, (c) => `\\x${hex(c)}`)).join("|");
  return text.replace(new RegExp(pattern, "gs"), MASK);
}

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, "0");

// Few letters, so that secrets overlap one another and their own beginnings.
const few = (length: { minLength: number; maxLength: number }) =>
  fc.string({ unit: fc.constantFrom("a", "b", "\xff", "\n"), ...length });
const anySecrets = fc.uniqueArray(few({ minLength: 1, maxLength: 7 }), { minLength: 1, maxLength: 4 });

/** Chunks of a text that has whole, cut and doubled secrets in it. */
const anyOutput = anySecrets.chain((secrets) => {
  const piece = fc.oneof(few({ minLength: 0, maxLength: 9 }), fc.constantFrom(...secrets));
  return fc.tuple(fc.constant(secrets), fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(12), { maxLength: 40 }));
});

function cut(text: string, sizes: readonly number[]): string[] {
  const chunks: string[] = [];
  let from = 0;
  for (const size of sizes) {
    chunks.push(text.slice(from, from + size));
    from += size;
  }
  return [...chunks, text.slice(from)];
}

describe("however the output is cut into pieces", () => {
  it("it comes out as if it had been masked as a whole", () => {
    fc.assert(
      fc.property(anyOutput, ([secrets, pieces, sizes]) => {
        const text = pieces.join("");
        expect(masked(secrets, cut(text, sizes))).toBe(expected(secrets, text));
      }),
      { numRuns: 2000 },
    );
  });

  it("no secret is in it, and every other byte is", () => {
    const any = fc.tuple(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 12 }), fc.nat(12), fc.nat(12));
    fc.assert(
      fc.property(any, ([noise, where, sizes]) => {
        const secret = "s3cret-token";
        const before = noise.slice(0, where).map((part) => Buffer.from(part).toString("latin1"));
        const after = noise.slice(where).map((part) => Buffer.from(part).toString("latin1"));
        const text = [...before, secret, ...after].join("");
        const out = masked([secret], cut(text, new Array<number>(40).fill(sizes)));
        expect(out).toBe([...before, MASK, ...after].join(""));
      }),
    );
  });

  it("never more is held back than the longest secret less a byte, and only what begins one", () => {
    fc.assert(
      fc.property(anyOutput, ([secrets, pieces, sizes]) => {
        const list = secrets.map(bytes);
        const masker = createMasker(list);
        let seen = "";
        let out = "";
        for (const chunk of cut(pieces.join(""), sizes)) {
          seen += chunk;
          out += masker.push(bytes(chunk)).toString("latin1");
          const held = heldBack(secrets, seen, out);
          expect(held === "" || secrets.some((one) => one.length > held.length && one.startsWith(held))).toBe(true);
        }
      }),
    );
  });

  /** What is missing in the output so far: the end that, masked as the rest, would complete it. */
  function heldBack(secrets: readonly string[], seen: string, out: string): string {
    for (let length = 0; length <= seen.length; length++) {
      const decided = seen.slice(0, seen.length - length);
      if (expected(secrets, decided) === out) return seen.slice(seen.length - length);
    }
    throw new Error("the output is of another text");
  }
});

describe("what is not the beginning of a secret", () => {
  it("leaves at once", () => {
    const masker = createMasker([bytes("eyJhbGci")]);
    expect(masker.push(bytes("Password? ")).toString()).toBe("Password? ");
    expect(masker.push(bytes("ok ey")).toString()).toBe("ok ");
    expect(masker.push(bytes("e")).toString()).toBe("ey");
    expect(masker.end().toString()).toBe("e");
  });

  it("is not changed where it was held back in vain until the end", () => {
    expect(masked(["token-1"], ["token", "-"])).toBe("token-");
  });
});

it("passes everything on where there is no secret", () => {
  expect(masked([], ["a", "", "b"])).toBe("ab");
});

const TOKEN = "ab/cd+ef==gh~ij\"kl\\mn'op";

function maskedForms(token: string, text: string): string {
  const masker = createMasker(listEncodings(token).map((form) => Buffer.from(form)));
  return Buffer.concat([masker.push(Buffer.from(text)), masker.end()]).toString();
}

describe("a token is recognised", () => {
  it.each<[string, string]>([
    ["as it is", TOKEN],
    ["in an address", encodeURIComponent(TOKEN)],
    ["in an address with small letters", encodeURIComponent(TOKEN).replace(/%../g, (code) => code.toLowerCase())],
    ["in an address where the slash stays", encodeURIComponent(TOKEN).replaceAll("%2F", "/")],
    ["in a form", new URLSearchParams({ t: TOKEN }).toString().slice(2)],
    ["in JSON", JSON.stringify(TOKEN).slice(1, -1)],
    ["in JSON with escaped slashes", JSON.stringify(TOKEN).slice(1, -1).replaceAll("/", "\\/")],
    ["in base64", Buffer.from(TOKEN).toString("base64")],
    ["in base64url", Buffer.from(TOKEN).toString("base64url")],
  ])("%s", (_where, text) => {
    expect(maskedForms(TOKEN, `<${text}>`)).toBe(`<${MASK}>`);
  });

  const token = fc.string({ unit: fc.constantFrom(..."eyJhbGciOi.-_~+/="), minLength: 8, maxLength: 60 });
  const around = fc.string({ unit: fc.constantFrom(..."user: token;"), maxLength: 9 });

  it("in base64 and base64url wherever it is in what was encoded", () => {
    fc.assert(
      fc.property(token, around, around, fc.constantFrom("base64", "base64url"), (secret, before, after, encoding) => {
        const out = maskedForms(secret, Buffer.from(`${before}${secret}${after}`).toString(encoding));
        expect(out).toContain(MASK);
        // At most a character at either side has bits of the token's first or last byte, beside those of a neighbour.
        const own = Math.ceil((Buffer.byteLength(before) * 8) / 6) + Math.ceil((Buffer.byteLength(after) * 8) / 6) + 4;
        expect(out.replace(MASK, "").length).toBeLessThanOrEqual(own);
      }),
    );
  });
});

it("looks for nothing so short that it is found everywhere", () => {
  expect([listEncodings("abc"), listEncodings("abcde"), listEncodings("abcdef")[0]]).toEqual([[], [], "abcdef"]);
  for (const form of listEncodings("abcdef")) expect(form.length).toBeGreaterThanOrEqual(6);
});

/** Streams of ours, each with a file where one is named: `a`, or `b`, a second name of it, or `c`. */
function ownStreams([stdin, stdout, stderr]: readonly (string | undefined)[]) {
  const folder = temporaryFolder();
  for (const name of ["a", "c"]) writeFileSync(join(folder, name), "");
  linkSync(join(folder, "a"), join(folder, "b"));
  const stream = (name: string | undefined) => {
    const made = new PassThrough();
    return name === undefined ? made : Object.assign(made, { fd: openSync(join(folder, name), "r+") });
  };
  return { stdin: stream(stdin), stdout: stream(stdout), stderr: stream(stderr) };
}

describe.skipIf(ON_WINDOWS)("the streams of a command", () => {
  const both = { stdout: true, stderr: true };
  const none = { stdout: false, stderr: false };

  it.each<[string, typeof both, (string | undefined)[], string[]]>([
    ["are inherited where nothing is masked", none, ["c", "a", "b"], ["inherit", "inherit", "inherit"]],
    ["are a pipe each where both are masked", both, ["c", "a", "c"], ["inherit", "out", "err"]],
    ["are one pipe where both share a file", both, ["c", "a", "b"], ["inherit", "out", "out"]],
    [
      "are a pipe and an inherited one",
      { stdout: true, stderr: false },
      ["c", "a", "b"],
      ["inherit", "out", "inherit"],
    ],
    [
      "are an inherited one and a pipe",
      { stdout: false, stderr: true },
      ["c", "a", "b"],
      ["inherit", "inherit", "err"],
    ],
    ["are pipes where ours are no files", none, [undefined, undefined, undefined], ["pipe", "out", "err"]],
    ["are two pipes where one of ours is no file", both, ["c", undefined, "a"], ["inherit", "out", "err"]],
    ["are two pipes where the other is no file", both, ["c", "a", undefined], ["inherit", "out", "err"]],
  ])("%s", (_what, masked, files, expected) => {
    const opened = openStdio(masked, ownStreams(files));
    const { stdio, out, err } = opened;
    const names = (stdio as unknown[]).map((one) =>
      one === out?.writeEnd ? "out" : one === err?.writeEnd ? "err" : one,
    );
    expect(names).toEqual(expected);
    closeWriteEnds(opened);
    for (const pipe of [out, err]) {
      if (pipe !== undefined) expect(() => closeSync(pipe.writeEnd)).toThrow("EBADF");
      pipe?.readEnd.destroy();
    }
  });

  it("of the system are read to their end", async () => {
    const opened = openStdio(both, ownStreams(["c", "a", "c"]));
    const { out, err } = opened;
    for (const pipe of [out, err]) if (pipe !== undefined) writeFileSync(pipe.writeEnd, "text");
    closeWriteEnds(opened);
    const read = async (stream: Readable | undefined) => Buffer.concat(await (stream ?? Readable.from([])).toArray());
    expect([String(await read(out?.readEnd)), String(await read(err?.readEnd))]).toEqual(["text", "text"]);
  });
});

describe("an output that is passed on", () => {
  const secrets = [Buffer.from("a-secret")];
  const sink = (failure?: Error) => {
    const chunks: string[] = [];
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        chunks.push(String(chunk));
        done(failure);
      },
    }).on("error", () => {});
    return { stream, chunks };
  };

  it("has its secrets masked, also across two parts of it", async () => {
    const { stream, chunks } = sink();
    const parts = ["it is a-se", "cret, a-s"].map((part) => Buffer.from(part));
    expect(await passOutput(Readable.from(parts), stream, secrets)).toBeUndefined();
    expect([chunks.join(""), chunks.includes("")]).toEqual(["it is ********, a-s", false]);
  });

  it("ends with the error of its reader, and closes its source", async () => {
    const failure = Object.assign(new Error("gone"), { code: "EPIPE" });
    const source = new PassThrough();
    source.write("text");
    expect(await passOutput(source, sink(failure).stream, secrets)).toBe(failure);
    expect(source.destroyed).toBe(true);
  });
});

it("no pipe of the system is made on Windows", () => {
  const before = os.platform();
  Object.defineProperty(process, "platform", { value: "win32" });
  try {
    expect(openStdio({ stdout: true, stderr: true }, ownStreams(["c", "a", "c"]))).toEqual({
      stdio: ["inherit", "pipe", "pipe"],
      out: undefined,
      err: undefined,
    });
  } finally {
    Object.defineProperty(process, "platform", { value: before });
  }
});
