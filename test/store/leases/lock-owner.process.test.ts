import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, vi } from "vitest";
import { system } from "../../../src/platform.js";
import {
  bootClock,
  checkLiveness,
  type LockOwner,
  processStart,
  thisProcess,
} from "../../../src/store/leases/lock-owner.js";
import { type Child, compile, startChild } from "../../helpers/child.js";
import { until } from "../../helpers/server.js";
import { ON_LINUX } from "../../helpers/systems.js";
import type { SelfPortrait } from "./lock-owner-driver.js";

const DRIVER = new URL("lock-owner-driver.ts", import.meta.url);
const { run } = system;
const onLinux = describe.skipIf(!ON_LINUX);

async function start(wrapper: readonly string[] = []): Promise<Child & { holder: LockOwner; clock: number }> {
  const child = startChild(await compile(DRIVER), {}, wrapper);
  const { holder, clock } = (await child.hears("is")) as unknown as SelfPortrait;
  return { ...child, holder, clock };
}

/** The state of a process in the table, such as `T` for one that is stopped. */
function readState(pid: number): string | undefined {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2)[0];
}

describe("a process that holds something", () => {
  it("is alive while it runs, this one included", async () => {
    const { holder } = await start();
    expect(checkLiveness(thisProcess())).toBe("alive");
    expect(checkLiveness(holder)).toBe("alive");
  });

  it("is dead once it is killed", async () => {
    const child = await start();
    await child.kill("SIGKILL");
    expect(checkLiveness(child.holder)).toBe("dead");
  });

  it("counts the time as every other one of this boot does", async () => {
    const before = bootClock();
    const { clock } = await start();
    expect(clock).toBeGreaterThanOrEqual(before);
    expect(clock).toBeLessThanOrEqual(bootClock());
  });
});

onLinux("a process in the table of processes", () => {
  it("is alive while it is stopped", async () => {
    const child = await start();
    await child.kill("SIGSTOP");
    await until(() => readState(child.pid) === "T");
    expect(checkLiveness(child.holder)).toBe("alive");
  });

  it("is dead once it is killed, also before its parent has collected its exit", async () => {
    // The parent becomes a program that never asks for its children.
    const { holder } = await start(["sh", "-c", '"$@" & exec sleep 1000', "sh"]);
    process.kill(holder.pid, "SIGKILL");
    await until(() => readState(holder.pid) === "Z");
    expect(checkLiveness(holder)).toBe("dead");
  });

  const unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const canUnshare = spawnSync(unshare[0] ?? "", [...unshare.slice(1), "true"]).status === 0;

  it.skipIf(!canUnshare)("is not known from a real separate namespace (needs the right to unshare)", async () => {
    const child = await start(unshare);
    expect(child.holder.pid).toBeLessThan(100);
    expect(child.holder.boot).toBe(thisProcess().boot);
    expect(child.holder.space).not.toBe(thisProcess().space);
    expect(checkLiveness(child.holder)).toBe("unknown");
  });
});

describe("a process where there is no table of processes", () => {
  afterEach(() => {
    vi.doUnmock("node:fs");
    vi.resetModules();
  });

  /** The module as it is on macOS: no /proc. */
  async function elsewhere(): Promise<typeof import("../../../src/store/leases/lock-owner.js")> {
    const missing = () => {
      throw Object.assign(new Error("none"), { code: "ENOENT" });
    };
    vi.doMock("node:fs", () => ({ readFileSync: missing, readlinkSync: missing }));
    vi.resetModules();
    const { system } = await import("../../../src/platform.js");
    Object.assign(system, {
      name: "darwin",
      run: (program: string, args: readonly string[]) => (program === "sysctl" ? "ABC-1\n" : run(program, args)),
    });
    return import("../../../src/store/leases/lock-owner.js");
  }

  it("is alive while its number is in use, and dead when it is free", async () => {
    const there = await elsewhere();
    const me = there.thisProcess();
    expect(me).toMatchObject({ pid: process.pid, boot: "session ABC-1", space: "" });
    expect(there.checkLiveness(me)).toBe("alive");
    const child = await start();
    expect(there.checkLiveness({ ...me, pid: child.pid })).toBe("alive");
    await child.kill("SIGKILL");
    expect(there.checkLiveness({ ...me, pid: child.pid })).toBe("dead");
  });

  it.skipIf(spawnSync("ps", ["-p", "1"]).status !== 0)(
    "is distinguished by its start from a later one with its number (needs ps)",
    async () => {
      const there = await elsewhere();
      const { pid, holder } = await start();
      const started = String(processStart(pid));
      expect(Math.abs(Number(started) - Date.now())).toBeLessThan(600_000);
      expect(there.wasReused({ ...holder, started })).toBe(false);
      expect(there.wasReused({ ...holder, started: String(Number(started) - 60_000) })).toBe(true);
    },
  );
});
