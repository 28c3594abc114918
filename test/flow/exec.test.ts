import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MASK, shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, startCli, startProcesses, temporaryFolder, until } from "../helpers/cli.js";
import { type Desk, type Newcomer, startDesk } from "./support.js";

startProcesses();

const script = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;
if (!script) process.stderr.write("SKIPPED: the tests of exec on a terminal need the program script of util-linux\n");

let desk: Desk;
let me: Newcomer;
let url: string;
let token: string;

beforeAll(async () => {
  desk = await startDesk();
  url = desk.url;
  me = await signedIn();
  token = (await me.grant()).tokens.accessToken.reveal();
});
afterAll(() => desk.close());

async function signedIn(): Promise<Newcomer> {
  const newcomer = desk.newcomer();
  await newcomer.signIn();
  return newcomer;
}

/** A command that is a program of Node's. */
const node = (program: string, ...words: string[]) => ["--", process.execPath, "-e", program, ...words];
const exec = (...words: string[]) => me.run(["exec", url, ...words]);
const sha = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
const HASH = 'console.log(require("crypto").createHash("sha256").update(process.env.NAME).digest("hex"))';

/** Modes mean nothing to root: whoever runs these tests, or nobody, to whom everything in the folder is given. */
function ordinaryUser(folder: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  for (const name of ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })]) {
    chownSync(join(folder, name), 65534, 65534);
  }
  return { uid: 65534, gid: 65534 };
}

async function runUnder(user: { uid?: number; gid?: number }, words: readonly string[], home: string) {
  const child = spawn(process.execPath, words, { env: cleanEnv({ AGENTAUTH_HOME: home }), stdio: "pipe", ...user });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  return { code: (await once(child, "close"))[0] as number | null, stdout: out(), stderr: err() };
}

// The kernel ignores SIGTSTP in a process group that no shell of its session controls: under nohup, in some containers.
const stopsOnRequest =
  spawnSync("sh", [
    "-c",
    'sleep 5 & kill -TSTP $!; sleep 0.5; grep -q "^State:.T" /proc/$!/status; state=$?; kill -KILL $!; exit $state',
  ]).status === 0;
if (!stopsOnRequest) process.stderr.write("SKIPPED: exec with SIGTSTP needs a process group that can be stopped\n");

describe("the command", () => {
  it("finds the token in AGENTAUTH_TOKEN, or in the variable that was named", async () => {
    for (const [flags, name] of [
      [[], "AGENTAUTH_TOKEN"],
      [["--as", "env:MY_TOKEN"], "MY_TOKEN"],
      [["--as", "MY_TOKEN"], "MY_TOKEN"],
    ] as const) {
      const { code, stdout, stderr } = await exec(...flags, ...node(HASH.replace("NAME", name)));
      expect([code, stdout, stderr]).toEqual([0, `${sha(token)}\n`, ""]);
    }
  });

  it("gets its words as they were typed, also those that are flags of ours, and no token among them", async () => {
    const words = ["--verbose", "--as", "file:X", "--", "-q", "$HOME", "a b", "*", ""];
    const { stdout, stderr } = await exec(
      ...node("console.log(JSON.stringify(process.argv.slice(1)))", "--", ...words),
    );
    expect([JSON.parse(stdout), stderr]).toEqual([words, ""]);
  });

  it("has the environment that there was, less the secrets of ours", async () => {
    const env = { EMPTY: "", KEPT: "yes", AGENTAUTH_CLIENT_SECRET: "client-secret" };
    const { stdout } = await me.run(["exec", url, ...node("console.log(JSON.stringify(process.env))")], { env });
    const seen = JSON.parse(stdout) as Record<string, string>;
    expect(seen).toMatchObject({ EMPTY: "", KEPT: "yes", AGENTAUTH_HOME: me.home, AGENTAUTH_TOKEN: MASK });
    expect(Object.keys(seen)).not.toContain("AGENTAUTH_CLIENT_SECRET");
    expect(Object.keys(seen)).not.toContain("AGENTAUTH_API_TOKEN");
  });

  it("reads our standard input", async () => {
    const stdin = "line\n".repeat(100_000);
    const { code, stdout } = await me.run(["exec", url, "--", "cat"], { stdin });
    expect([code, sha(stdout)]).toEqual([0, sha(stdin)]);
  });

  it("gets a renewed token where the one that is kept has not enough time left", async () => {
    const other = await signedIn();
    const before = (await other.grant()).tokens.accessToken.reveal();
    await other.age(50);
    const { stdout } = await other.run(["exec", url, ...node(HASH.replace("NAME", "AGENTAUTH_TOKEN"))]);
    expect(stdout).toBe(`${sha((await other.grant()).tokens.accessToken.reveal())}\n`);
    expect(stdout).not.toBe(`${sha(before)}\n`);
  });
});

describe("the exit code", () => {
  it.each([0, 3, 125, 255])("is that of the command: %i", async (code) => {
    expect(await exec(...node(`process.exit(${code})`))).toEqual({ code, signal: null, stdout: "", stderr: "" });
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGKILL", 137],
    ["SIGINT", 130],
  ])("is 128 and the number of the signal that ended it: %s", async (signal, code) => {
    expect((await exec("--", "sh", "-c", `kill -${signal.slice(3)} $$`)).code).toBe(code);
  });

  it("is 127 where there is no such program, and 126 where it cannot be run", async () => {
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

  it("is in the error as JSON too", async () => {
    const { stderr } = await me.run(["exec", url, "--", "nope"], { env: { AGENTAUTH_ERRORS: "json" } });
    expect(JSON.parse(stderr)).toMatchObject({ error: { class: "usage", exit_code: 127 } });
    const byAgent = await me.run(["exec", url, "--", "nope"], { env: { AGENTAUTH_AGENT: "1" } });
    expect([byAgent.code, JSON.parse(byAgent.stderr).error.exit_code]).toEqual([127, 127]);
  });

  it("is 125 where the system does not start it for another reason", async () => {
    const looped = join(temporaryFolder(), "loop");
    symlinkSync(looped, looped);
    const failed = await exec("--", looped);
    expect(failed.code).toBe(125);
    expect(failed.stderr).toMatch(/^error: the command "\S+" cannot be started \(ELOOP\)\n/);
  });
});

describe("nothing is started", () => {
  const touch = (file: string) => ["--", "touch", file];

  it("where nobody is signed in: exit 4, and the command to run", async () => {
    const file = join(temporaryFolder(), "started");
    const { code, stdout, stderr } = await desk.newcomer().run(["exec", url, ...touch(file)]);
    expect([code, stdout, existsSync(file)]).toEqual([4, "", false]);
    expect(stderr).toContain(`\nhint: agentauth login ${url}\n`);
  });

  it("where the issuer does not answer and the token has ended: exit 5", async () => {
    const file = join(temporaryFolder(), "started");
    const other = await signedIn();
    await other.age(-1);
    desk.sandbox.faults.add({ kind: "status", status: 503, path: "token", times: 0 });
    const { code } = await other.run(["exec", url, "--retries", "0", ...touch(file)]);
    desk.sandbox.faults.clear();
    expect([code, existsSync(file)]).toEqual([5, false]);
  });

  it.each<[string, (file: string) => string[], RegExp]>([
    [
      "without --",
      (file) => ["touch", file],
      /^error: the command must follow "--"\nhint: agentauth exec \S+ -- touch \S+\n$/,
    ],
    ["with a flag and no --", (file) => ["touch", "-c", file], /\nhint: agentauth exec \S+ -- touch -c \S+\n$/],
    ["with a word before --", (file) => ["x", ...touch(file)], /^error: unexpected argument "x" before "--"\n/],
    ["with an unknown flag before --", (file) => ["--sa", "x", ...touch(file)], /^error: unknown option '--sa'\n/],
    [
      "with an unknown place",
      (file) => ["--as", "header:X", ...touch(file)],
      /^error: --as "header:X" must be env:NAME /,
    ],
    ["without a command", () => ["--"], /^error: there is no command after "--"\nhint: agentauth exec </],
  ])("%s: exit 2", async (_what, words, said) => {
    const file = join(temporaryFolder(), "started");
    const { code, stdout, stderr } = await exec(...words(file));
    expect([code, stdout, existsSync(file)]).toEqual([2, "", false]);
    expect(stderr).toMatch(said);
  });
});

describe("the token in what the command prints", () => {
  const PRINT = "process.stdout.write(process.env.AGENTAUTH_TOKEN); process.stderr.write(process.env.AGENTAUTH_TOKEN)";

  it("is masked on both streams where they are no terminal", async () => {
    expect(await exec(...node(PRINT))).toEqual({ code: 0, signal: null, stdout: MASK, stderr: MASK });
  });

  it("is masked where it comes byte by byte, and in base64 in a header", async () => {
    const slowly = "for (const byte of Buffer.from(process.env.AGENTAUTH_TOKEN)) fs.writeSync(1, Buffer.of(byte))";
    expect((await exec(...node(slowly))).stdout).toBe(MASK);
    const basic = 'console.log(Buffer.from("me:" + process.env.AGENTAUTH_TOKEN).toString("base64"))';
    expect((await exec(...node(basic))).stdout).toBe(`bWU6${MASK}\n`);
  });

  it("is masked where a program prints it that the command left behind", async () => {
    const { code, stdout } = await exec("--", "sh", "-c", '(sleep 1; echo "later $AGENTAUTH_TOKEN") & exit 7');
    expect([code, stdout]).toEqual([7, `later ${MASK}\n`]);
  });

  it("is left as it is with --no-mask", async () => {
    expect(await exec("--no-mask", ...node(PRINT))).toEqual({ code: 0, signal: null, stdout: token, stderr: token });
  });

  it("is masked also where a script writes to /dev/stdout and /dev/stderr", async () => {
    const script = 'echo "$AGENTAUTH_TOKEN" > /dev/stdout; echo "$AGENTAUTH_TOKEN" > /dev/stderr';
    expect(await exec("--", "sh", "-c", script)).toMatchObject({ code: 0, stdout: `${MASK}\n`, stderr: `${MASK}\n` });
  });

  it.each(["stdout", "stderr"] as const)(
    "is masked on %s also where there is no folder for temporary files",
    async (stream) => {
      const env = { TMPDIR: join(temporaryFolder(), "nonexistent") };
      const result = await me.run(["exec", url, ...node(PRINT)], { env });
      expect([result.code, result[stream]]).toEqual([0, MASK]);
    },
  );

  it("takes nothing of ten megabytes of any bytes", async () => {
    const program = `const bytes = Buffer.alloc(10e6); for (let i = 0; i < 10e6; i++) bytes[i] = (i * 2654435761) >>> 24;
      process.stdout.write(bytes)`;
    const bytes = Buffer.alloc(10e6);
    for (let i = 0; i < 10e6; i++) bytes[i] = (i * 2654435761) >>> 24;
    const { child } = me.start(["exec", url, ...node(program)]);
    const hash = createHash("sha256");
    child.stdout?.on("data", (chunk: Buffer) => hash.update(chunk));
    const [code] = (await once(child, "close")) as [number | null];
    expect([code, hash.digest("hex")]).toEqual([0, sha(bytes)]);
  });

  it("comes in order where both streams go to one place", async () => {
    const program =
      'for (let i = 0; i < 300; i++) fs.writeSync(1 + (i % 2), i + (i % 50 ? "" : process.env.AGENTAUTH_TOKEN) + "\\n")';
    const words = [process.execPath, BIN, "exec", url, ...node(program)].map(shellWord).join(" ");
    const child = spawn("sh", ["-c", `${words} 2>&1`], { env: cleanEnv({ AGENTAUTH_HOME: me.home }), stdio: "pipe" });
    const out = collect(child.stdout);
    await once(child, "close");
    expect(out()).toBe(Array.from({ length: 300 }, (_, i) => `${i}${i % 50 ? "" : MASK}\n`).join(""));
  });
});

it.skipIf(!existsSync("/dev/full"))("output that cannot be written is no success of the command", async () => {
  const words = [process.execPath, BIN, "exec", url, "--", "echo", "hello"].map(shellWord).join(" ");
  const env = cleanEnv({ AGENTAUTH_HOME: me.home });
  const child = spawn("sh", ["-c", `${words} > /dev/full`], { env, stdio: "pipe" });
  const err = collect(child.stderr);
  expect((await once(child, "close"))[0]).toBe(1);
  expect(err()).toMatch(/^error: the command's output cannot be passed on: ENOSPC/);
});

describe("a reader that leaves", () => {
  it("ends a command that goes on printing, as in any pipeline", async () => {
    const { child, err } = me.start(["exec", url, "--", "yes"]);
    await new Promise<void>((resolve) => child.stdout?.once("readable", () => resolve()));
    child.stdout?.destroy();
    expect([(await once(child, "exit"))[0], err()]).toEqual([141, ""]);
  });

  it("is no matter to a command that has nothing more to say", async () => {
    const file = join(temporaryFolder(), "done");
    const { child } = me.start(["exec", url, "--", "sh", "-c", `sleep 1; touch '${file}'; exit 9`]);
    child.stdout?.destroy();
    expect([(await once(child, "exit"))[0], existsSync(file)]).toEqual([9, true]);
  });
});

describe("a signal", () => {
  /** Says "ready", then the name of each signal that comes, and ends with 42 on SIGTERM. */
  const LISTENER = `for (const name of ["SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGTERM"])
      process.on(name, () => { console.log(name); if (name === "SIGTERM") process.exit(42); });
    setInterval(() => {}, 1000); console.log("ready")`;

  it("is passed on to the command, once, and its result is ours", async () => {
    const { child, out, err } = me.start(["exec", url, ...node(LISTENER)]);
    await until(() => out() === "ready\n");
    let said = "ready\n";
    for (const signal of ["SIGINT", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"] as const) {
      child.kill(signal);
      said += `${signal}\n`;
      await until(() => out().length >= said.length);
    }
    child.kill("SIGTERM");
    const [code] = (await once(child, "close")) as [number | null];
    expect([code, out(), err()]).toEqual([42, `${said}SIGTERM\n`, ""]);
  });

  it("that the command does not answer ends both", async () => {
    const { child, out } = me.start(["exec", url, "--", "sh", "-c", "echo $$; exec sleep 600"]);
    await until(() => out().endsWith("\n"));
    child.kill("SIGTERM");
    expect((await once(child, "close"))[0]).toBe(143);
    expect(() => process.kill(Number(out()), 0)).toThrow("ESRCH");
  });

  it.skipIf(!stopsOnRequest)("stops and continues both", async () => {
    const { child, out } = me.start(["exec", url, "--", "sh", "-c", "echo $$; exec sleep 600"]);
    await until(() => out().endsWith("\n"));
    const state = (pid: number | undefined) => /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    const both = () => [state(child.pid), state(Number(out()))];
    child.kill("SIGTSTP");
    await until(() => both().join("") === "TT");
    child.kill("SIGCONT");
    await until(() => !both().includes("T"));
    child.kill("SIGTERM");
    expect((await once(child, "close"))[0]).toBe(143);
  });

  it("ends the waiting for a program that the command left behind", async () => {
    const { child, out } = me.start(["exec", url, "--", "sh", "-c", "sleep 600 & echo $!; exit 5"]);
    await until(() => out().endsWith("\n"));
    // The shell has ended when it is nobody's child any more that it has left.
    await until(() => /^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${Number(out())}/status`, "utf8"))?.[1] === "1");
    child.kill("SIGTERM");
    expect((await once(child, "close"))[0]).toBe(5);
    process.kill(Number(out()));
  });

  it("ends a run whose reader has stopped reading", async () => {
    const child = startCli(["exec", url, "--as", "file:F", "--", "yes"], { env: { AGENTAUTH_HOME: me.home } });
    // Reads one piece, and then nothing more.
    await new Promise<void>((resolve) => child.stdout?.once("readable", () => resolve()));
    child.kill("SIGTERM");
    expect((await once(child, "exit"))[0]).toBe(143);
    expect(readdirSync(join(me.home, "run"))).toEqual([]);
  });
});

describe.skipIf(!script)("on a terminal", () => {
  async function onTerminal(
    words: readonly string[],
    withTerminal: (typed: (text: string) => void, out: () => string) => Promise<void>,
  ) {
    const command = [process.execPath, BIN, "exec", url, ...words].map(shellWord).join(" ");
    const env = cleanEnv({ TERM: "dumb", AGENTAUTH_HOME: me.home });
    const child = spawn("script", ["-qec", `exec ${command}`, "/dev/null"], { env, stdio: "pipe" });
    const out = collect(child.stdout);
    const ended = once(child, "close");
    await withTerminal((text) => child.stdin.write(text), out);
    return { code: (await ended)[0] as number | null, lines: out().replaceAll("\r", "").split("\n") };
  }

  const TERMINALS =
    "console.log(process.stdin.isTTY, process.stdout.isTTY, process.stderr.isTTY, process.env.AGENTAUTH_TOKEN)";

  it("the command has the terminal for itself, and the token is not masked", async () => {
    const { code, lines } = await onTerminal(node(TERMINALS), async () => {});
    expect([code, lines[0]]).toEqual([0, `true true true ${token}`]);
  });

  it("--mask masks there too", async () => {
    const { code, lines } = await onTerminal(["--mask", ...node(TERMINALS)], async () => {});
    expect([code, lines[0]]).toEqual([0, `true undefined undefined ${MASK}`]);
  });

  it("Ctrl-C reaches the command once", async () => {
    const counter = `let count = 0; process.on("SIGINT", () => { count++; setTimeout(() => { console.log("count", count); process.exit(3); }, 500); });
      setInterval(() => {}, 1000); console.log("ready")`;
    const { code, lines } = await onTerminal(node(counter), async (typed, out) => {
      await until(() => out().includes("ready"));
      typed("\u0003");
    });
    expect([code, lines.find((line) => line.includes("count"))]).toEqual([3, "^Ccount 1"]);
  });
});

describe("--as file:NAME", () => {
  const SHOW = `const path = process.env.TOKEN_FILE; const { mode } = fs.statSync(path);
    console.log(path, (mode & 0o777).toString(8), require("crypto").createHash("sha256").update(fs.readFileSync(path)).digest("hex"),
      process.env.AGENTAUTH_TOKEN)`;

  it("gives the path of a private file with the token, and removes it at the end", async () => {
    const { code, stdout } = await exec("--as", "file:TOKEN_FILE", ...node(SHOW));
    const [path = "", ...rest] = stdout.trim().split(" ");
    expect([code, rest]).toEqual([0, ["600", sha(token), "undefined"]]);
    expect([dirname(dirname(path)), existsSync(dirname(path))]).toEqual([join(me.home, "run"), false]);
    expect((statSync(join(me.home, "run")).mode & 0o777).toString(8)).toBe("700");
  });

  it.each(["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"] as const)("removes it on %s too", async (signal) => {
    const { child, out } = me.start(["exec", url, "--as", "file:F", "--", "sh", "-c", 'echo "$F"; exec sleep 600']);
    await until(() => out().endsWith("\n"));
    expect(existsSync(out().trim())).toBe(true);
    child.kill(signal);
    await once(child, "close");
    expect(readdirSync(join(me.home, "run"))).toEqual([]);
  });

  it("removes it where the command is not found", async () => {
    expect((await exec("--as", "file:F", "--", "no-such-program")).code).toBe(127);
    expect(readdirSync(join(me.home, "run"))).toEqual([]);
  });

  it("starts nothing where it has no private place for it: exit 8", async () => {
    const other = await signedIn();
    writeFileSync(join(other.home, "run"), "");
    const file = join(temporaryFolder(), "started");
    const { code, stderr } = await other.run(["exec", url, "--as", "file:F", "--", "touch", file]);
    expect([code, existsSync(file)]).toEqual([8, false]);
    expect(stderr).toMatch(/^error: the folder \S+ cannot be created/);
  });

  it.skipIf(process.platform === "win32").each(["500", "000"])(
    "starts nothing where the folder for it has the mode %s: exit 8, and the command that repairs it",
    async (mode) => {
      const home = mkdtempSync(join(tmpdir(), "agentauth-test-"));
      try {
        cpSync(me.home, home, { recursive: true });
        const run = join(home, "run");
        mkdirSync(run, { recursive: true });
        chmodSync(run, Number.parseInt(mode, 8));
        const user = ordinaryUser(home);
        const words = [BIN, "exec", url, "--as", "file:F", "--", "touch", join(home, "started")];
        const result = () => runUnder(user, words, home);
        const refused = await result();
        expect([refused.code, refused.stdout, existsSync(join(home, "started"))]).toEqual([8, "", false]);
        expect(refused.stderr).toBe(`error: the folder ${run} cannot be written (EACCES)\nhint: chmod 700 ${run}\n`);
        chmodSync(run, 0o700);
        expect(await result()).toEqual({ code: 0, stdout: "", stderr: "" });
        expect(existsSync(join(home, "started"))).toBe(true);
      } finally {
        rmSync(home, { recursive: true, force: true });
      }
    },
  );

  it("keeps it fresh while the command runs, and masks the new token as the first", async () => {
    const short = await startDesk({ accessTokenTtl: 4 });
    try {
      const newcomer = short.newcomer();
      await newcomer.signIn();
      const watch = `const seen = new Set(); const look = () => {
          const token = fs.readFileSync(process.env.F, "utf8"); if (seen.has(token)) return;
          seen.add(token); console.log("token", token);
          fetch(process.argv[1], { method: "POST", headers: { authorization: "Bearer " + token, "content-type": "application/json",
              accept: "application/json, text/event-stream" }, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' })
            .then((reply) => { console.log(reply.status); if (seen.size === 3) process.exit(0); });
        }; setInterval(look, 50); look()`;
      const { code, stdout, stderr } = await newcomer.run([
        "exec",
        short.url,
        "--as",
        "file:F",
        ...node(watch, short.url),
      ]);
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toBe(`token ${MASK}\n200\n`.repeat(3));
      expect(
        newcomer.asked().filter((request) => request === "POST /<pool>/token refresh_token 200").length,
      ).toBeGreaterThan(1);
    } finally {
      await short.close();
    }
  });

  it("says once that it cannot be renewed, and nobody is asked to sign in while the command runs", async () => {
    const short = await startDesk({ accessTokenTtl: 3 });
    try {
      const newcomer = short.newcomer();
      await newcomer.signIn();
      const flags = ["--as", "file:F", "--login", "--browser", "none"];
      const { child, out, err } = newcomer.start([
        "exec",
        short.url,
        ...flags,
        "--",
        "sh",
        "-c",
        "echo go; exec sleep 600",
      ]);
      await until(() => out() === "go\n");
      expect((await newcomer.run(["logout", short.url])).code).toBe(0);
      await until(() => err().includes("\n"));
      child.kill("SIGTERM");
      expect((await once(child, "close"))[0]).toBe(143);
      expect(err()).toMatch(/^warning: the token file cannot be refreshed; trying again: sign-in is needed .*\n$/);
    } finally {
      await short.close();
    }
  });
});
