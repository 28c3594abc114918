import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { MASK, shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, startProcess, temporaryFolder, until } from "../helpers/cli.js";
import { ON_LINUX } from "../helpers/systems.js";
import { flowTest, type User } from "./support.js";

const script = ON_LINUX && spawnSync("script", ["--version"]).status === 0;
if (!script) process.stderr.write("SKIPPED: the tests of exec on a terminal need the program script of util-linux\n");

const it = flowTest().extend("start", ({ url, user }) => (...words: string[]) => {
  const child = startProcess(["exec", url, ...words], { env: { AGENTAUTH_HOME: user.home } });
  return { child, out: collect(child.stdout), err: collect(child.stderr) };
});

/** A command that is a program of Node's. */
const node = (program: string, ...words: string[]) => ["--", process.execPath, "-e", program, ...words];

// The kernel ignores SIGTSTP in a process group that no shell of its session controls: under nohup, in some containers.
const stopsOnRequest =
  spawnSync("sh", [
    "-c",
    'sleep 5 & kill -TSTP $!; sleep 0.5; grep -q "^State:.T" /proc/$!/status; state=$?; kill -KILL $!; exit $state',
  ]).status === 0;
if (!stopsOnRequest) process.stderr.write("SKIPPED: exec with SIGTSTP needs a process group that can be stopped\n");

describe("the token in what the command prints", () => {
  it("comes in order where both streams go to one place", async ({ url, user }) => {
    const program =
      'for (let i = 0; i < 300; i++) fs.writeSync(1 + (i % 2), i + (i % 50 ? "" : process.env.AGENTAUTH_TOKEN) + "\\n")';
    const words = [process.execPath, BIN, "exec", url, ...node(program)].map(shellWord).join(" ");
    const child = spawn("sh", ["-c", `${words} 2>&1`], { env: cleanEnv({ AGENTAUTH_HOME: user.home }), stdio: "pipe" });
    const out = collect(child.stdout);
    await once(child, "close");
    expect(out()).toBe(Array.from({ length: 300 }, (_, i) => `${i}${i % 50 ? "" : MASK}\n`).join(""));
  });
});

it.skipIf(!existsSync("/dev/full"))(
  "output that cannot be written is no success of the command",
  async ({ url, user }) => {
    const words = [process.execPath, BIN, "exec", url, "--", "echo", "hello"].map(shellWord).join(" ");
    const env = cleanEnv({ AGENTAUTH_HOME: user.home });
    const child = spawn("sh", ["-c", `${words} > /dev/full`], { env, stdio: "pipe" });
    const err = collect(child.stderr);
    expect((await once(child, "close"))[0]).toBe(8);
    expect(err()).toMatch(/^error: the command's output cannot be passed on: ENOSPC/);
  },
);

describe("a reader that leaves", () => {
  it("ends a command that continues to print, as in any pipeline", async ({ start }) => {
    const { child, err } = start("--", "yes");
    await new Promise<void>((resolve) => child.stdout?.once("readable", () => resolve()));
    child.stdout?.destroy();
    expect([(await once(child, "exit"))[0], err()]).toEqual([141, ""]);
  });

  it("does not affect a command that prints nothing more", async ({ start }) => {
    const file = join(temporaryFolder(), "done");
    const { child } = start("--", "sh", "-c", `sleep 1; touch '${file}'; exit 9`);
    child.stdout?.destroy();
    expect([(await once(child, "exit"))[0], existsSync(file)]).toEqual([9, true]);
  });
});

describe("a signal", () => {
  /** Says "ready", then the name of each signal that comes, and ends with 42 on SIGTERM. */
  const LISTENER = `for (const name of ["SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGTERM"])
      process.on(name, () => { console.log(name); if (name === "SIGTERM") process.exit(42); });
    setInterval(() => {}, 1000); console.log("ready")`;

  it("is passed on to the command once, and its exit code is returned", async ({ start }) => {
    const { child, out, err } = start(...node(LISTENER));
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

  it("that the command does not answer ends both", async ({ start }) => {
    const { child, out } = start("--", "sh", "-c", "echo $$; exec sleep 600");
    await until(() => out().endsWith("\n"));
    child.kill("SIGTERM");
    expect((await once(child, "close"))[0]).toBe(143);
    expect(() => process.kill(Number(out()), 0)).toThrow("ESRCH");
  });

  it.skipIf(!stopsOnRequest)("stops and continues both", async ({ start }) => {
    const { child, out } = start("--", "sh", "-c", "echo $$; exec sleep 600");
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

  it.runIf(ON_LINUX)("stops the wait for a program that the command left behind", async ({ start }) => {
    const { child, out } = start("--", "sh", "-c", "sleep 600 & echo $!; exit 5");
    await until(() => out().endsWith("\n"));
    // The shell has ended once init is the parent of the program that it left behind.
    await until(() => /^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${Number(out())}/status`, "utf8"))?.[1] === "1");
    child.kill("SIGTERM");
    expect((await once(child, "close"))[0]).toBe(5);
    process.kill(Number(out()));
  });

  it("ends a run whose reader has stopped reading", async ({ url, user }) => {
    const child = startProcess(["exec", url, "--", "yes"], { env: { AGENTAUTH_HOME: user.home } });
    // Reads one piece, and then nothing more.
    await new Promise<void>((resolve) => child.stdout?.once("readable", () => resolve()));
    child.kill("SIGTERM");
    expect((await once(child, "exit"))[0]).toBe(143);
  });
});

describe.skipIf(!script)("on a terminal", () => {
  async function onTerminal(
    { home, url }: User,
    words: readonly string[],
    withTerminal: (typed: (text: string) => void, out: () => string) => Promise<void>,
  ) {
    const command = [process.execPath, BIN, "exec", url, ...words].map(shellWord).join(" ");
    const env = cleanEnv({ TERM: "dumb", AGENTAUTH_HOME: home });
    const child = spawn("script", ["-qec", `exec ${command}`, "/dev/null"], { env, stdio: "pipe" });
    const out = collect(child.stdout);
    const ended = once(child, "close");
    await withTerminal((text) => child.stdin.write(text), out);
    return { code: (await ended)[0] as number | null, lines: out().replaceAll("\r", "").split("\n") };
  }

  const TERMINALS =
    "console.log(process.stdin.isTTY, process.stdout.isTTY, process.stderr.isTTY, process.env.AGENTAUTH_TOKEN)";

  it("the command uses the terminal directly, and the token is not masked", async ({ user }) => {
    const { code, lines } = await onTerminal(user, node(TERMINALS), async () => {});
    expect([code, lines[0]]).toEqual([0, `true true true ${user.token}`]);
  });

  it("Ctrl-C reaches the command once", async ({ user }) => {
    const counter = `let count = 0; process.on("SIGINT", () => { count++; setTimeout(() => { console.log("count", count); process.exit(3); }, 500); });
      setInterval(() => {}, 1000); console.log("ready")`;
    const { code, lines } = await onTerminal(user, node(counter), async (typed, out) => {
      await until(() => out().includes("ready"));
      typed("\u0003");
    });
    expect([code, lines.find((line) => line.includes("count"))]).toEqual([3, "^Ccount 1"]);
  });
});
