import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, startProcess, until } from "../helpers/cli.js";
import { type Desk, startDesk } from "./support.js";

const script = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;
if (!script) process.stderr.write("SKIPPED: a terminal that is closed needs the program script of util-linux\n");

const SAID = "Saving a refreshed token before exiting…\n";

let desk: Desk;

beforeAll(async () => {
  desk = await startDesk();
});
afterAll(() => desk.close());

/** Somebody whose token is asked for anew, by an issuer that takes its time with the answer. */
async function slowRenewal(ms = 2000) {
  const user = desk.newcomer();
  await user.signIn();
  const before = await user.grant();
  desk.sandbox.faults.clear();
  desk.sandbox.faults.add({ kind: "slow-headers", ms, path: "token", times: 1 });
  return {
    user,
    command: ["token", desk.url, "--force-refresh"],
    start(args: readonly string[]) {
      const child = startProcess(args, { env: { AGENTAUTH_HOME: user.home } });
      return { child, out: collect(child.stdout), err: collect(child.stderr) };
    },
    isAsking: () => desk.sandbox.faults.list().some(({ fired }) => fired > 0),
    /** The issuer has given a new refresh token for the old one: the session is lost if it was not kept. */
    async expectKept() {
      expect((await user.grant()).generation).toBe(before.generation + 1);
      expect(await user.run(["token", desk.url, "--force-refresh"])).toMatchObject({ code: 0, stderr: "" });
    },
  };
}

describe.skipIf(process.platform === "win32")("during a refresh", () => {
  it.each<[NodeJS.Signals[], number]>([
    [["SIGINT", "SIGINT"], 130],
    [["SIGTERM", "SIGINT"], 143],
    [["SIGHUP", "SIGTERM"], 129],
    [["SIGINT", "SIGHUP", "SIGTERM", "SIGINT"], 130],
  ])("%j: the renewal is saved, that is said once, and the first one decides the exit code", async (signals, code) => {
    const { start, command, isAsking, expectKept } = await slowRenewal();
    const { child, out, err } = start(command);
    await until(isAsking);
    const ended = once(child, "close");
    for (const signal of signals) {
      child.kill(signal);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect([...(await ended), out(), err()]).toEqual([code, null, "", SAID]);
    await expectKept();
  });

  it("SIGHUP alone: the renewal is saved, and it ends with 129", async () => {
    const { start, command, isAsking, expectKept } = await slowRenewal();
    const { child, out, err } = start(command);
    await until(isAsking);
    child.kill("SIGHUP");
    expect([...(await once(child, "close")), out(), err()]).toEqual([129, null, "", "error: ended by SIGHUP\n"]);
    await expectKept();
  });

  it.skipIf(!script)("a terminal that is closed, so that nothing can be said any more, loses nothing", async () => {
    const { user, command, isAsking, expectKept } = await slowRenewal();
    const words = [process.execPath, BIN, ...command, "-v"].map(shellWord).join(" ");
    const env = cleanEnv({ TERM: "dumb", AGENTAUTH_HOME: user.home });
    const terminal = spawn("script", ["-qec", `echo $$; exec ${words}`, "/dev/null"], { env, stdio: "pipe" });
    const out = collect(terminal.stdout);
    await until(isAsking);
    const pid = Number.parseInt(out(), 10);
    terminal.kill("SIGKILL");
    await until(() => !isAlive(pid));
    await expectKept();
  });

  it("a second signal during the wait for another process's renewal ends this one at once", async () => {
    const { start, command, isAsking, expectKept } = await slowRenewal(8000);
    const first = start(command);
    await until(isAsking);
    const second = start([...command, "-v"]);
    await until(() => second.err().includes("waiting for its result"));
    const ended = once(second.child, "close");
    second.child.kill("SIGINT");
    // Of two that are on their way at once, either may be heard first.
    await new Promise((resolve) => setTimeout(resolve, 250));
    second.child.kill("SIGTERM");
    expect((await ended)[0]).toBe(130);
    expect(second.err()).not.toContain(SAID);
    expect(first.child.exitCode).toBeNull();
    expect((await once(first.child, "close"))[0]).toBe(0);
    await expectKept();
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
