import { describe, expect, it } from "vitest";
import type { Env } from "../../src/platform.js";
import { limitSecretCommands, secretLine, secretLineSync } from "../../src/profile/secrets.js";

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
