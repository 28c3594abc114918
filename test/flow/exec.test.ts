import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { MASK } from "../../src/redact.js";
import { linesOf, startCli, temporaryFolder } from "../helpers/cli.js";
import { flowTest } from "./support.js";

const it = flowTest()
  .extend(
    "exec",
    ({ url, user }) =>
      (...words: string[]) =>
        user.run(["exec", url, ...words]),
  )
  .extend("token", ({ user }) => user.token);

/** A command that is a script of the shell. */
const shell = (script: string, ...words: string[]) => ["--", "sh", "-c", script, "sh", ...words];
const sha = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
const hex = (text: string) => Buffer.from(text).toString("hex");
/** Prints a variable in hexadecimal, which is not masked. */
const HEX = 'printf %s "$NAME" | od -An -v -tx1 | tr -d " \\n"';

describe("the command", () => {
  it("finds the token in AGENTAUTH_TOKEN, or in the variable that was named", async ({ exec, token }) => {
    for (const [flags, name] of [
      [[], "AGENTAUTH_TOKEN"],
      [["--as", "MY_TOKEN"], "MY_TOKEN"],
    ] as const) {
      const { code, stdout, stderr } = await exec(...flags, ...shell(HEX.replace("NAME", name)));
      expect([code, stdout, stderr]).toEqual([0, hex(token), ""]);
    }
  });

  it("gets its arguments as typed, also those that are flags of agentauth, and no token among them", async ({
    exec,
  }) => {
    const words = ["--verbose", "--as", "X", "--", "-q", "$HOME", "a b", "*", ""];
    const { stdout, stderr } = await exec(...shell('for word; do echo "$word"; done', ...words));
    expect([stdout, stderr]).toEqual([words.map((word) => `${word}\n`).join(""), ""]);
  });

  it("has the environment of agentauth without its secrets", async ({ url, user }) => {
    const env = { EMPTY: "", KEPT: "yes", AGENTAUTH_CLIENT_SECRET: "client-secret" };
    const { stdout } = await user.run(["exec", url, "--", "env"], { env });
    const seen = Object.fromEntries(linesOf(stdout).map((line) => [line.split("=", 1)[0], line.replace(/^\w+=/, "")]));
    expect(seen).toMatchObject({ EMPTY: "", KEPT: "yes", AGENTAUTH_HOME: user.home, AGENTAUTH_TOKEN: MASK });
    expect(Object.keys(seen)).not.toContain("AGENTAUTH_CLIENT_SECRET");
    expect(Object.keys(seen)).not.toContain("AGENTAUTH_API_TOKEN");
  });

  it("has no variable that a setting or another variable names for a secret", async ({ me, url }) => {
    await me.logIn();
    expect((await me.run(["config", "set", "api_token", "env:OF_PROFILE"])).code).toBe(0);
    const env = { OF_PROFILE: "secret", OF_VARIABLE: "secret", OTHER: "no secret" };
    const names = { AGENTAUTH_CLIENT_SECRET: "env:OF_VARIABLE" };
    const child = ["--", "sh", "-c", 'echo "$OF_PROFILE$OF_VARIABLE$OTHER"'];
    const api = { AGENTAUTH_API_TOKEN: undefined };
    const args = ["exec", url, ...child];
    expect(await me.run(args, { env: { ...env, ...names, ...api } })).toMatchObject({ code: 0, stdout: "no secret\n" });
    const broker = ["exec", "--broker", `mcp=${url}`, ...child];
    expect(await me.run(broker, { env: { ...env, ...names, ...api } })).toMatchObject({ stdout: "no secret\n" });
  });

  it("reads the standard input of agentauth", async ({ url, user }) => {
    const stdin = "line\n".repeat(100_000);
    const { code, stdout } = await user.run(["exec", url, "--", "cat"], { stdin });
    expect([code, sha(stdout)]).toEqual([0, sha(stdin)]);
  });

  it("gets a refreshed token where the stored one expires too soon", async ({ me, url }) => {
    await me.logIn();
    const before = (await me.grant()).tokens.accessToken.reveal();
    await me.age(50);
    const { stdout } = await me.run(["exec", url, ...shell(HEX.replace("NAME", "AGENTAUTH_TOKEN"))]);
    expect(stdout).toBe(hex((await me.grant()).tokens.accessToken.reveal()));
    expect(stdout).not.toBe(hex(before));
  });
});

describe("the exit code", () => {
  it.for([0, 3, 125, 255])("is that of the command: %i", async (code, { exec }) => {
    expect(await exec(...shell(`exit ${code}`))).toEqual({ code, signal: null, stdout: "", stderr: "" });
  });

  it.for([
    ["SIGTERM", 143],
    ["SIGKILL", 137],
    ["SIGINT", 130],
  ] as const)("is 128 and the number of the signal that ended it: %s", async ([signal, code], { exec }) => {
    expect((await exec("--", "sh", "-c", `kill -${signal.slice(3)} $$`)).code).toBe(code);
  });

  it("is 127 where there is no such program, and 126 where it cannot be run", async ({ exec }) => {
    const file = join(temporaryFolder(), "not-a-program");
    writeFileSync(file, "#!/bin/sh\n");
    chmodSync(file, 0o644);
    for (const [command, code, said] of [
      ["no-such-program", 127, "is not found (ENOENT)"],
      [file, 126, "cannot be run (EACCES)"],
    ] as const) {
      const result = await exec("--", command);
      expect([result.code, result.stdout]).toEqual([code, ""]);
      expect(result.stderr).toMatch(new RegExp(`^error: the command "\\S+" ${said.replace(/[()]/g, "\\$&")}\nhint: `));
    }
  });

  it("is in the error as JSON too", async ({ url, user }) => {
    const { stderr } = await user.run(["exec", url, "--", "nope"], { env: { AGENTAUTH_ERRORS: "json" } });
    expect(JSON.parse(stderr)).toMatchObject({ error: { class: "usage", exit_code: 127 } });
    const byAgent = await user.run(["exec", url, "--", "nope"], { env: { AGENTAUTH_AGENT: "1" } });
    expect([byAgent.code, JSON.parse(byAgent.stderr).error.exit_code]).toEqual([127, 127]);
  });

  it("is 125 where the system does not start it for another reason", async ({ exec }) => {
    const looped = join(temporaryFolder(), "loop");
    symlinkSync(looped, looped);
    const failed = await exec("--", looped);
    expect(failed.code).toBe(125);
    expect(failed.stderr).toMatch(/^error: the command "\S+" cannot be started \(ELOOP\)\n/);
  });
});

describe("nothing is started", () => {
  const touch = (file: string) => ["--", "touch", file];

  it("where no login is stored: exit 4, and the command to run", async ({ me, url }) => {
    const file = join(temporaryFolder(), "started");
    const { code, stdout, stderr } = await me.run(["exec", url, ...touch(file)]);
    expect([code, stdout, existsSync(file)]).toEqual([4, "", false]);
    expect(stderr).toContain(`\nhint: agentauth login ${url}\n`);
  });

  it("where the issuer does not answer and the token has expired: exit 5", async ({ faults, me, url }) => {
    const file = join(temporaryFolder(), "started");
    await me.logIn();
    await me.age(-1);
    faults.add({ kind: "status", status: 503, path: "token", times: 0 });
    const { code } = await me.run(["exec", url, "--retries", "0", ...touch(file)]);
    expect([code, existsSync(file)]).toEqual([5, false]);
  });

  it.for<[string, (file: string) => string[], RegExp]>([
    [
      "without --",
      (file) => ["touch", file],
      /^error: the command must follow "--"\nhint: agentauth exec \S+ -- touch \S+\n$/,
    ],
    ["with a flag and no --", (file) => ["touch", "-c", file], /\nhint: agentauth exec \S+ -- touch -c \S+\n$/],
    ["with a word before --", (file) => ["x", ...touch(file)], /^error: unexpected argument "x" before "--"\n/],
    ["with an unknown flag before --", (file) => ["--sa", "x", ...touch(file)], /^error: unknown option '--sa'\n/],
    [
      "with a variable that is none",
      (file) => ["--as", "header:X", ...touch(file)],
      /^error: --as "header:X" must be a name /,
    ],
    ["without a command", () => ["--"], /^error: there is no command after "--"\nhint: agentauth exec http:\S+ -- </],
  ])("%s: exit 2", async ([, words, said], { exec }) => {
    const file = join(temporaryFolder(), "started");
    const { code, stdout, stderr } = await exec(...words(file));
    expect([code, stdout, existsSync(file)]).toEqual([2, "", false]);
    expect(stderr).toMatch(said);
  });
});

describe("the token in what the command prints", () => {
  const PRINT = 'printf %s "$AGENTAUTH_TOKEN"; printf %s "$AGENTAUTH_TOKEN" >&2';

  it("is masked on both streams where they are no terminal", async ({ exec }) => {
    expect(await exec(...shell(PRINT))).toEqual({ code: 0, signal: null, stdout: MASK, stderr: MASK });
  });

  it("is masked where it comes byte by byte, and in base64 in a header", async ({ exec }) => {
    const slowly = 'printf %s "$AGENTAUTH_TOKEN" | dd bs=1 2> /dev/null';
    expect((await exec(...shell(slowly))).stdout).toBe(MASK);
    const basic = 'printf %s "me:$AGENTAUTH_TOKEN" | base64 | tr -d "\\n"; echo';
    expect((await exec(...shell(basic))).stdout).toBe(`bWU6${MASK}\n`);
  });

  it("is masked where a program prints it that the command left behind", async ({ exec }) => {
    const { code, stdout } = await exec("--", "sh", "-c", '(sleep 1; echo "later $AGENTAUTH_TOKEN") & exit 7');
    expect([code, stdout]).toEqual([7, `later ${MASK}\n`]);
  });

  it("is masked also where a script writes to /dev/stdout and /dev/stderr", async ({ exec }) => {
    const script = 'echo "$AGENTAUTH_TOKEN" > /dev/stdout; echo "$AGENTAUTH_TOKEN" > /dev/stderr';
    expect(await exec("--", "sh", "-c", script)).toMatchObject({ code: 0, stdout: `${MASK}\n`, stderr: `${MASK}\n` });
  });

  it.for(["stdout", "stderr"] as const)(
    "is masked on %s also where there is no folder for temporary files",
    async (stream, { url, user }) => {
      const env = { TMPDIR: join(temporaryFolder(), "nonexistent") };
      const result = await user.run(["exec", url, ...shell(PRINT)], { env });
      expect([result.code, result[stream]]).toEqual([0, MASK]);
    },
  );

  it("leaves ten megabytes of arbitrary bytes unchanged", async ({ url, user }) => {
    const bytes = Buffer.alloc(10e6);
    for (let i = 0; i < 10e6; i++) bytes[i] = (i * 2654435761) >>> 24;
    const file = join(temporaryFolder(), "bytes");
    writeFileSync(file, bytes);
    const child = startCli(["exec", url, "--", "cat", file], { env: { AGENTAUTH_HOME: user.home } });
    const hash = createHash("sha256");
    child.stdout?.on("data", (chunk: Buffer) => hash.update(chunk));
    const [code] = (await once(child, "close")) as [number | null];
    expect([code, hash.digest("hex")]).toEqual([0, sha(bytes)]);
  });
});
