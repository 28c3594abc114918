import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startCliSandbox, until } from "../helpers/cli.js";

describe("a sandbox in a process of its own", () => {
  it("sandbox stop: both end with 0, nothing is left", async () => {
    const sandbox = await startCliSandbox(["--devices", "1"]);
    expect(await sandbox.run(["sandbox", "stop"])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "the sandbox has stopped\n",
    });
    await until(() => sandbox.child.exitCode !== null);
    expect(await sandbox.stop()).toBe(0);
    expect(existsSync(join(sandbox.home, "sandbox.json"))).toBe(false);
    expect(await sandbox.run(["sandbox", "status"])).toMatchObject({ code: 5, stdout: "no sandbox is running\n" });
    expect(await sandbox.run(["sandbox", "status", "--json"])).toMatchObject({
      code: 5,
      stdout: '{"running":false}\n',
    });
    expect(await sandbox.run(["sandbox", "stop"])).toMatchObject({ code: 0, stderr: "no sandbox is running\n" });
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s: exit %i, nothing is left", async (signal, expected) => {
    const sandbox = await startCliSandbox(["--devices", "1"]);
    expect(await sandbox.stop(signal)).toBe(expected);
    expect(existsSync(join(sandbox.home, "sandbox.json"))).toBe(false);
  });

  it("one that was killed does not stand in the way, even where its number is another's by now", async () => {
    const killed = await startCliSandbox(["--devices", "1"]);
    await killed.stop("SIGKILL");
    expect(existsSync(join(killed.home, "sandbox.json"))).toBe(true);
    expect((await killed.run(["sandbox", "status"])).code).toBe(5);
    const { ready: _, ...state } = killed.ready;
    const reused = { ...state, pid: process.pid, control_token: "sandbox_control_x" };
    writeFileSync(join(killed.home, "sandbox.json"), JSON.stringify(reused), { mode: 0o600 });
    expect(await killed.run(["sandbox", "status", "--json"])).toMatchObject({ code: 5, stdout: '{"running":false}\n' });
    const next = await startCliSandbox(["--devices", "1"], killed.home);
    expect(await next.run(["sandbox", "status"])).toMatchObject({ code: 0 });
    expect(await next.stop()).toBe(143);
  });
});
