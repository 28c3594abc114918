import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, startProcess, until } from "../helpers/cli.js";
import { ON_LINUX, ON_WINDOWS } from "../helpers/systems.js";
import { flowTest } from "./support.js";

const script = ON_LINUX && spawnSync("script", ["--version"]).status === 0;
if (!script) process.stderr.write("SKIPPED: a terminal that closes needs the program script of util-linux\n");

const SAID = "Saving a refreshed token before exiting…\n";

const it = flowTest().extend("slowRefresh", async ({ faults, me, url }) => {
  await me.logIn();
  const before = await me.grant();
  return {
    command: ["token", url, "--force-refresh"],
    /** Delays the answer to the next refresh. */
    delay: (ms: number) => void faults.add({ kind: "slow-headers", ms, path: "token", times: 1 }),
    isPending: () => faults.list().some(({ fired }) => fired > 0),
    start(args: readonly string[]) {
      const child = startProcess(args, { env: { AGENTAUTH_HOME: me.home } });
      return { child, out: collect(child.stdout), err: collect(child.stderr) };
    },
    /** The issuer has replaced the refresh token: the login is lost if the new one was not stored. */
    async expectStored() {
      expect((await me.grant()).generation).toBe(before.generation + 1);
      expect(await me.run(["token", url, "--force-refresh"])).toMatchObject({ code: 0, stderr: "" });
    },
  };
});

describe.skipIf(ON_WINDOWS)("during a refresh", () => {
  it.for<[NodeJS.Signals[], number]>([
    [["SIGINT", "SIGINT"], 130],
    [["SIGTERM", "SIGINT"], 143],
    [["SIGHUP", "SIGTERM"], 129],
    [["SIGINT", "SIGHUP", "SIGTERM", "SIGINT"], 130],
  ])(
    "%j: the refresh is saved, the message appears once, and the first signal decides the exit code",
    async ([signals, code], { slowRefresh }) => {
      slowRefresh.delay(4000);
      const { start, command, isPending, expectStored } = slowRefresh;
      const { child, out, err } = start(command);
      await until(isPending);
      const ended = once(child, "close");
      for (const signal of signals) {
        child.kill(signal);
        await received(child);
      }
      expect([...(await ended), out(), err()]).toEqual([code, null, "", SAID]);
      await expectStored();
    },
  );

  it("SIGHUP alone: the refresh is saved, and the exit code is 129", async ({ slowRefresh }) => {
    slowRefresh.delay(4000);
    const { start, command, isPending, expectStored } = slowRefresh;
    const { child, out, err } = start(command);
    await until(isPending);
    child.kill("SIGHUP");
    expect([...(await once(child, "close")), out(), err()]).toEqual([129, null, "", "error: ended by SIGHUP\n"]);
    await expectStored();
  });

  it.skipIf(!script)(
    "a terminal that closes, so that nothing can be printed, loses nothing",
    async ({ me, slowRefresh }) => {
      slowRefresh.delay(4000);
      const { command, isPending, expectStored } = slowRefresh;
      const words = [process.execPath, BIN, ...command, "-v"].map(shellWord).join(" ");
      const env = cleanEnv({ TERM: "dumb", AGENTAUTH_HOME: me.home });
      const terminal = spawn("script", ["-qec", `echo $$; exec ${words}`, "/dev/null"], { env, stdio: "pipe" });
      const out = collect(terminal.stdout);
      await until(isPending);
      const pid = Number.parseInt(out(), 10);
      terminal.kill("SIGKILL");
      await until(() => !isAlive(pid));
      await expectStored();
    },
  );

  it("a second signal during the wait for another process's refresh ends this process at once", async ({
    slowRefresh,
  }) => {
    slowRefresh.delay(8000);
    const { start, command, isPending, expectStored } = slowRefresh;
    const first = start(command);
    await until(isPending);
    const second = start([...command, "-v"]);
    await until(() => second.err().includes("waiting for its result"));
    const ended = once(second.child, "close");
    second.child.kill("SIGINT");
    await received(second.child);
    second.child.kill("SIGTERM");
    // The first signal ends it, and Node removes its handlers at the very end: then the second one kills it.
    expect([
      [130, null],
      [null, "SIGTERM"],
    ]).toContainEqual(await ended);
    expect(second.err()).not.toContain(SAID);
    expect(first.child.exitCode).toBeNull();
    expect((await once(first.child, "close"))[0]).toBe(0);
    await expectStored();
  });
});

/** Resolves when no signal to a process is pending: of two pending signals, either may be delivered first. */
async function received({ pid }: ChildProcess): Promise<void> {
  const isPending = () => {
    try {
      return !/^ShdPnd:\t0+$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    } catch {
      return false;
    }
  };
  await until(() => !isPending());
  // The handler runs after the delivery; systems without /proc deliver in this time as well.
  await new Promise((resolve) => setTimeout(resolve, 50));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
