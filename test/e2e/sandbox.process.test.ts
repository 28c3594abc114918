import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startCliSandbox } from "../helpers/cli.js";

describe("a sandbox in a separate process", () => {
  it("ends with 0 after sandbox stop, and nothing is left", async () => {
    const sandbox = await startCliSandbox(["--devices", "1"]);
    expect(await sandbox.run(["sandbox", "stop"])).toMatchObject({ code: 0, stdout: "" });
    expect(await sandbox.exitCode).toBe(0);
    expect(existsSync(join(sandbox.home, "sandbox.json"))).toBe(false);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s: exit %i, nothing is left", async (signal, expected) => {
    const sandbox = await startCliSandbox(["--devices", "1"]);
    expect(await sandbox.stop(signal)).toBe(expected);
    expect(existsSync(join(sandbox.home, "sandbox.json"))).toBe(false);
  });

  it("one that was killed does not block the next one, even where another process has its id by now", async () => {
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
