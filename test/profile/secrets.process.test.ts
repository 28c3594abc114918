import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Env } from "../../src/platform.js";
import {
  limitSecretCommands,
  namedSecret,
  referencedSecret,
  secretLine,
  secretLineSync,
  secretOrReferenced,
  wordsOf,
} from "../../src/profile/secrets.js";
import { unsignedJwt } from "../helpers/client-keys.js";
import { temporaryFolder } from "../helpers/folder.js";

const NODE = process.execPath;
/** The words that run a program of Node. */
const node = (program: string) => [NODE, "-e", program];
const LIMIT = 20_000;

function limited(limitMs: number): Env {
  const env = {};
  limitSecretCommands(env, limitMs);
  return env;
}

describe.each([
  [
    "at once",
    async (words: string[], limitMs = LIMIT) => secretLineSync(words, { from: "--x", env: limited(limitMs) }),
  ],
  ["without waiting", (words: string[], limitMs = LIMIT) => secretLine(words, { from: "--x", env: limited(limitMs) })],
])("a command that is run %s", (_how, run) => {
  it("returns the line that it prints, and reads nothing", async () => {
    expect(await run(node("process.stdin.on('data', () => {}).on('end', () => console.log('s3 cr\"et'))"))).toBe(
      's3 cr"et',
    );
    expect(await run(node("process.stdout.write('no line break')"))).toBe("no line break");
  });

  it.each<[string, string, RegExp]>([
    ["two lines", "console.log('s3cret\\nother')", /^the command of --x printed more than one line$/],
    ["a second line by a carriage return", "process.stdout.write('s3cret\\rother')", /more than one line/],
    ["nothing", "console.log('')", /^the command of --x printed nothing$/],
    [
      "an error",
      "console.error('\\nno session \\x1b[31m\\nsecond'); console.log('s3cret'); process.exitCode = 7",
      /^the command ".*node.*" of --x failed with exit code 7: "no session .*31m"$/,
    ],
    ["no error, but fails", "process.exit(1)", /failed with exit code 1$/],
    ["no error, but is killed", "process.kill(process.pid, 'SIGKILL')", /was killed$|failed with exit code/],
    ["1 GB", FLOOD(1), /printed more than 65536 bytes, and was stopped$/],
    ["1 GB of complaints", FLOOD(2), /printed more than 65536 bytes, and was stopped$/],
  ])("and prints %s fails, and shows no output", async (_what, program, message) => {
    const error = await run(node(program)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "usage", class: "usage", message: expect.stringMatching(message) });
    expect(String(error)).not.toContain("s3cret");
  });

  it("and never ends is stopped, with a process that it left behind", async () => {
    const waits = "setInterval(() => {}, 1000)";
    const leaves = `require("child_process").spawn(process.execPath, ["-e", "setTimeout(() => {}, 30000)"], { stdio: "inherit" })`;
    for (const program of [waits, `${leaves}; ${waits}`]) {
      await expect(run(node(program), 1500)).rejects.toMatchObject({
        code: "timeout",
        retryable: true,
        message: expect.stringMatching(/did not end within 1.5 s, and was stopped$/),
      });
    }
  });

  it("and is not there is named", async () => {
    await expect(run(["/nowhere/vault", "s3cret"])).rejects.toMatchObject({
      message: 'the command "/nowhere/vault" of --x cannot be started (ENOENT)',
    });
  });
});

/** A program that writes a gigabyte. */
function FLOOD(fd: number): string {
  return `const b = Buffer.alloc(1 << 20, "x"); for (let i = 0; i < 1024; i++) require("fs").writeSync(${fd}, b)`;
}

it("ends a command where its caller gives up", async () => {
  const controller = new AbortController();
  const run = secretLine(node("setInterval(() => {}, 1000)"), { from: "--x", signal: controller.signal });
  setTimeout(() => controller.abort(), 500);
  await expect(run).rejects.toMatchObject({ code: "aborted" });
  await expect(secretLine(node("1"), { from: "--x", signal: controller.signal })).rejects.toMatchObject({
    code: "aborted",
  });
});

it("starts no command for a caller that gives up before", async () => {
  const controller = new AbortController();
  const run = secretLine(["/nowhere/vault"], { from: "--x", signal: controller.signal });
  controller.abort();
  await expect(run).rejects.toMatchObject({ code: "aborted" });
});

it("splits a command into words without a shell", () => {
  expect(wordsOf("op read 'op://a b/c' $HOME;id `x`", "--x")).toEqual(["op", "read", "op://a b/c", "$HOME;id", "`x`"]);
  expect(() => wordsOf("op 'x", "--x")).toThrow("the command of --x has an unterminated '");
  expect(() => wordsOf(" ", "--x")).toThrow("the command of --x is empty");
});

describe("a reference to a command", () => {
  const folder = temporaryFolder();
  /** A command that prints a text, and counts its runs. */
  function counting(name: string, text: string) {
    const [log, program] = [join(folder, `${name}.log`), join(folder, `${name}.cjs`)];
    writeFileSync(log, "");
    writeFileSync(
      program,
      `require("fs").appendFileSync(${JSON.stringify(log)}, "x"); console.log(${JSON.stringify(text)})`,
    );
    const runs = async () => (await import("node:fs")).readFileSync(log, "utf8").length;
    return { reference: `exec:"${NODE}" "${program}"`, runs };
  }

  it("is run once for the process", async () => {
    const { reference, runs } = counting("plain", "s3cret");
    const secret = referencedSecret(reference, "profile p", {});
    expect([secret.read(), secret.read()]).toEqual(["s3cret", "s3cret"]);
    expect(await runs()).toBe(1);
  });

  it("is run again when the token that it printed has expired", async () => {
    for (const [name, exp, expected] of [
      ["old", Date.now() / 1000 - 10, 2],
      ["current", Date.now() / 1000 + 1000, 1],
    ] as const) {
      const { reference, runs } = counting(name, await unsignedJwt({ exp }));
      const secret = referencedSecret(reference, "profile p", {});
      expect(secret.read()).toBe(secret.read());
      expect(await runs()).toBe(expected);
    }
  });

  it("may be what a flag or a variable has", () => {
    const path = join(folder, "secret");
    writeFileSync(path, "of a file\n", { mode: 0o600 });
    const { reference } = counting("flag", "of a command");
    const env = { NAME: "of a variable" };
    for (const read of [namedSecret, secretOrReferenced]) {
      expect(read(reference, "--x", env)).toBe("of a command");
      expect(read(`file:${path}`, "--x", env)).toBe("of a file");
      expect(read("env:NAME", "--x", env)).toBe("of a variable");
    }
    expect(namedSecret(path, "--x", env)).toBe("of a file");
    expect(secretOrReferenced("itself", "--x", env)).toBe("itself");
  });
});
