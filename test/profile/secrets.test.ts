import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import type { Env } from "../../src/platform.js";
import {
  commandOutput,
  isReference,
  limitSecretCommands,
  namedSecret,
  readSecretFile,
  referencedSecret,
  secretLine,
  secretLineSync,
  secretOrReferenced,
  splitWords,
  writeSecretFile,
} from "../../src/profile/secrets.js";
import { temporaryFolder } from "../helpers/cli.js";
import { unsignedJwt } from "../helpers/client-keys.js";
import { rejection } from "../helpers/service.js";
import { ON_WINDOWS } from "../helpers/systems.js";

const root = process.getuid?.() === 0;
let folder: string;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, "secret");
});

function make(content: string | Buffer, mode = 0o600): void {
  writeFileSync(path, content);
  chmodSync(path, mode);
}

function failure(work: () => unknown): AgentAuthError {
  try {
    work();
  } catch (error) {
    if (error instanceof AgentAuthError) return error;
    throw error;
  }
  throw new Error("expected a failure");
}

describe("reading", () => {
  it.each([
    ["tok", "tok"],
    ["tok\n", "tok"],
    ["tok\r\n", "tok"],
    ["tok\n\n", "tok\n"],
    [" tok ", " tok "],
    ["", ""],
  ])("%j is %j", (content, expected) => {
    make(content);
    expect(readSecretFile(path)).toBe(expected);
  });

  it("a file that is not there names it and the reason", () => {
    expect(failure(() => readSecretFile(path))).toMatchObject({
      code: "store_failed",
      class: "store",
      message: `the file ${path} cannot be read (ENOENT)`,
    });
  });

  it.skipIf(ON_WINDOWS).each([0o640, 0o604, 0o644, 0o660, 0o666, 0o620, 0o602, 0o610, 0o601, 0o777])(
    "mode %o is refused, with the command that repairs it",
    (mode) => {
      make("tok", mode);
      const { message, hint, class: kind } = failure(() => readSecretFile(path));
      const shown = mode.toString(8).padStart(4, "0");
      const reason = `can be read by others (mode ${shown}, owner: you)`;
      expect([kind, message]).toEqual(["store", `the file ${path} ${reason}`]);
      execFileSync("sh", ["-c", hint ?? ""]);
      expect(readSecretFile(path)).toBe("tok");
    },
  );

  it.skipIf(ON_WINDOWS).each([0o600, 0o400, 0o700])("mode %o is good", (mode) => {
    make("tok", mode);
    expect(readSecretFile(path)).toBe("tok");
  });

  it.skipIf(ON_WINDOWS)("a symbolic link is refused, wherever it leads", () => {
    make("tok");
    for (const [name, target] of [
      ["a", path],
      ["b", "/dev/zero"],
      ["c", join(folder, "nothing")],
    ] as const) {
      symlinkSync(target, join(folder, name));
      expect(failure(() => readSecretFile(join(folder, name)))).toMatchObject({
        class: "store",
        message: expect.stringContaining("is a symbolic link (ELOOP)"),
      });
    }
  });

  it.skipIf(ON_WINDOWS)("a hard link is refused", () => {
    make("tok");
    linkSync(path, join(folder, "second"));
    expect(failure(() => readSecretFile(path)).message).toContain("has another name too (a hard link)");
  });

  it.skipIf(ON_WINDOWS)("a FIFO, a device and a folder are refused, and nothing waits for them", () => {
    execFileSync("mkfifo", ["-m", "600", path]);
    mkdirSync(join(folder, "folder"), { mode: 0o700 });
    for (const odd of [path, "/dev/zero", join(folder, "folder")]) {
      expect(failure(() => readSecretFile(odd))).toMatchObject({
        class: "store",
        message: expect.stringContaining("is not an ordinary file"),
      });
    }
  });

  it("64 KiB are read, one byte more is refused", () => {
    make("x".repeat(64 * 1024));
    expect(readSecretFile(path)).toHaveLength(64 * 1024);
    make("x".repeat(64 * 1024 + 1));
    expect(failure(() => readSecretFile(path)).message).toContain("is larger than 65536 bytes");
  });

  it.runIf(root)("another user's file is refused, with the command that repairs it", () => {
    make("tok");
    chownSync(path, 12_345, 12_345);
    const { message, hint } = failure(() => readSecretFile(path));
    expect([message, hint]).toEqual([`the file ${path} belongs to another user (uid 12345)`, `chown 0 ${path}`]);
  });
});

describe("writing", () => {
  it.skipIf(ON_WINDOWS)("makes a folder and a file for no other user, whatever the umask", () => {
    const before = process.umask(0);
    try {
      const deep = join(folder, "a", "b", "secret");
      writeSecretFile(deep, "tok");
      const modes = [join(folder, "a"), join(folder, "a", "b"), deep].map((made) =>
        (statSync(made).mode & 0o777).toString(8),
      );
      expect(modes).toEqual(["700", "700", "600"]);
    } finally {
      process.umask(before);
    }
  });

  it.skipIf(ON_WINDOWS)("takes the place of a link, and leaves what it led to as it was", () => {
    const target = join(folder, "target");
    writeFileSync(target, "theirs");
    symlinkSync(target, path);
    writeSecretFile(path, "tok");
    expect([readFileSync(target, "utf8"), readSecretFile(path)]).toEqual(["theirs", "tok"]);
  });

  it("replaces a file whole and leaves nothing beside it", () => {
    make("a long old secret", 0o644);
    writeSecretFile(path, "new");
    expect([readSecretFile(path), readdirSync(folder)]).toEqual(["new", ["secret"]]);
  });

  it("that fails names the file and leaves nothing beside it", () => {
    mkdirSync(path);
    expect(failure(() => writeSecretFile(path, "tok"))).toMatchObject({
      class: "store",
      message: expect.stringContaining(`the file ${path} cannot be written`),
    });
    expect(readdirSync(folder)).toEqual(["secret"]);
  });

  it("under a file that is no folder says what to do", () => {
    make("x");
    const error = failure(() => writeSecretFile(join(path, "below", "secret"), "tok"));
    expect(error).toMatchObject({ class: "store", hint: expect.stringContaining("AGENTAUTH_HOME") });
  });
});

/** The words that run a script of a shell. */
const sh = (script: string) => ["sh", "-c", script];
function limited(limitMs: number | undefined): Env {
  const env = {};
  if (limitMs !== undefined) limitSecretCommands(env, limitMs);
  return env;
}
const ALONE = "it must print the secret alone, in one line";

// How programs that ignore all of this are ended is in secrets.process.test.ts.
describe.skipIf(ON_WINDOWS).each([
  [
    "at once",
    async (words: string[], limitMs?: number) => secretLineSync(words, { from: "--x", env: limited(limitMs) }),
  ],
  ["without waiting", (words: string[], limitMs?: number) => secretLine(words, { from: "--x", env: limited(limitMs) })],
])("a command of a shell that is run %s", (_how, run) => {
  it.each([
    ["a line", "echo 's3 cr\"et'", 's3 cr"et'],
    ["no line break", "printf s3cret", "s3cret"],
    ["a line break of Windows", "printf 's3cret\\r\\n'", "s3cret"],
    ["a complaint beside it", "echo careful >&2; echo s3cret", "s3cret"],
    ["nothing that it read", 'read -r line; printf "$line"s3cret', "s3cret"],
    ["64 KiB", "head -c 65536 /dev/zero | tr '\\0' x", "x".repeat(65_536)],
  ])("and prints %s is the secret", async (_what, script, secret) => {
    expect(await run(sh(script))).toBe(secret);
  });

  it.each([
    ["two lines", "printf 's3cret\\nother'", "the command of --x printed more than one line"],
    ["a second line by a carriage return", "printf 's3cret\\rother'", "the command of --x printed more than one line"],
    ["nothing", "echo", "the command of --x printed nothing"],
    [
      "an error",
      "printf '\\n \\nno session\\nsecond\\n' >&2; echo s3cret; exit 7",
      'the command "sh" of --x failed with exit code 7: "no session"',
    ],
    ["no error, but fails", "echo s3cret; exit 1", 'the command "sh" of --x failed with exit code 1'],
    ["no error, but is killed", "echo s3cret; kill -9 $$", 'the command "sh" of --x was killed'],
    [
      "more than 64 KiB",
      "head -c 65537 /dev/zero | tr '\\0' x",
      'the command "sh" of --x printed more than 65536 bytes, and was stopped',
    ],
  ])("and prints %s fails, and shows no output", async (_what, script, message) => {
    const error = await rejection(Promise.resolve().then(() => run(sh(script))));
    expect(error).toMatchObject({ code: "usage", class: "usage", message, hint: ALONE });
  });

  it("and does not end in its time is stopped", async () => {
    expect(await rejection(Promise.resolve().then(() => run(sh("sleep 30"), 60)))).toMatchObject({
      code: "timeout",
      class: "unavailable",
      message: 'the command "sh" of --x did not end within 0.06 s, and was stopped',
      hint: "run it by hand: it may wait for you",
    });
  });

  it("and is not there is named", async () => {
    expect(await rejection(Promise.resolve().then(() => run(["/nowhere/vault", "s3cret"])))).toMatchObject({
      code: "usage",
      message: 'the command "/nowhere/vault" of --x cannot be started (ENOENT)',
      hint: "name a program, by its path or on PATH",
    });
  });
});

describe.skipIf(ON_WINDOWS)("a command whose caller waits", () => {
  it("may print any number of lines, of which none is lost", async () => {
    expect(await commandOutput(sh("echo a; echo b; printf c"), { from: "--x" })).toBe("a\nb\nc");
  });

  it("ends where its caller gives up, or did before", async () => {
    const controller = new AbortController();
    const run = rejection(secretLine(sh("sleep 30"), { from: "--x", signal: controller.signal }));
    setTimeout(() => controller.abort(), 20);
    expect(await run).toMatchObject({ code: "aborted" });
    const marker = join(folder, "marker");
    const late = secretLine(sh(`touch ${marker}`), { from: "--x", signal: controller.signal });
    expect(await rejection(late)).toMatchObject({ code: "aborted" });
    expect(readdirSync(folder)).toEqual([]);
  });
});

it.each([
  ["op read 'op://a b/c' $HOME;id", ["op", "read", "op://a b/c", "$HOME;id"]],
  ["  a  ", ["a"]],
])("the command %j has the words %j", (command, words) => {
  expect(splitWords(command, "--x")).toEqual(words);
});

it.each([
  ["op 'x", "the command of --x has an unterminated '"],
  [" ", "the command of --x is empty"],
  ["''", "the command of --x has an empty program name"],
])("the command %j is refused", (command, message) => {
  expect(() => splitWords(command, "--x")).toThrow(expect.objectContaining({ code: "usage", message, hint: ALONE }));
});

describe("a reference", () => {
  it.each([
    ["env:NAME", true],
    ["env:_a1", true],
    ["env:", false],
    ["env:1a", false],
    ["env:a b", false],
    ["file:x", true],
    ["file:", false],
    ["exec:x y", true],
    ["exec:", false],
    [" env:NAME", false],
    ["other:x", false],
    ["s3cret", false],
  ])("is %j: %s", (text, expected) => {
    expect(isReference(text)).toBe(expected);
  });

  it("to a variable names it where it is not set", () => {
    const secret = referencedSecret("env:NAME", "profile p", { NAME: "" });
    expect(secret.source).toBe("profile p, NAME");
    expect(failure(() => secret.read())).toMatchObject({
      code: "usage",
      class: "usage",
      message: "the environment variable NAME, named by profile p, is not set",
    });
    expect(referencedSecret("env:NAME", "profile p", { NAME: "s3cret" }).read()).toBe("s3cret");
  });

  it("to a file is read each time, with colons in its name", () => {
    const named = join(folder, "a:b");
    const secret = referencedSecret(`file:${named}`, "--x", {});
    expect(secret.source).toBe(`--x, ${named}`);
    for (const text of ["one", "two"]) {
      writeSecretFile(named, text);
      expect(secret.read()).toBe(text);
    }
  });

  it("is what a flag or a variable may have in place of the secret, or of its file", () => {
    make("of a file\n");
    const env = { NAME: "of a variable" };
    for (const read of [namedSecret, secretOrReferenced]) {
      expect(read(`file:${path}`, "--x", env)).toBe("of a file");
      expect(read("env:NAME", "--x", env)).toBe("of a variable");
    }
    expect(namedSecret(path, "--x", env)).toBe("of a file");
    expect(secretOrReferenced("itself", "--x", env)).toBe("itself");
  });

  it.skipIf(ON_WINDOWS)("to a command runs it once, or again when the token that it printed has expired", async () => {
    const [past, future] = [Date.now() / 1000 - 10, Date.now() / 1000 + 1000];
    for (const [text, runs] of [
      ["s3cret", 1],
      [await unsignedJwt({ exp: past }), 2],
      [await unsignedJwt({ exp: future }), 1],
      [await unsignedJwt({}), 1],
    ] as const) {
      const log = join(folder, "log");
      writeFileSync(log, "");
      const secret = referencedSecret(`exec:sh -c 'echo x >> ${log}; echo ${text}'`, "profile p", {});
      expect([secret.read(), secret.read()]).toEqual([text, text]);
      expect(readFileSync(log, "utf8")).toBe("x\n".repeat(runs));
    }
  });
});
