import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { startDesk } from "../cli/commands/desk.js";
import { collect, startProcess, until } from "../helpers/cli.js";

const unshare = spawnSync("unshare", ["--net", "true"]).status === 0;
if (!unshare) process.stderr.write("SKIPPED: the broker's client without a network needs unshare --net\n");

it.skipIf(!unshare)("a program without a network calls a tool through the broker, and has no token", async () => {
  const desk = await startDesk();
  const folder = mkdtempSync(join(tmpdir(), "b-"));
  onTestFinished(async () => {
    rmSync(folder, { recursive: true, force: true });
    await desk.close();
  });
  const user = desk.user();
  await user.logIn();
  const [grant] = await user.store.list();
  const socket = join(folder, "run", "a.sock");
  const broker = startProcess(["broker", "--listen", `unix:${socket}`, "--grant", `mcp=${desk.url}`], {
    env: { AGENTAUTH_HOME: user.home },
  });
  const stderr = collect(broker.stderr);
  await until(() => stderr().includes("broker ready") || broker.exitCode !== null);
  const client = fileURLToPath(new URL("./client-without-network.mjs", import.meta.url));
  const run = spawn("unshare", ["--net", process.execPath, client, socket, desk.url], {
    env: { PATH: process.env["PATH"] },
  });
  const [out, err] = [collect(run.stdout), collect(run.stderr)];
  expect({ exit: await once(run, "close"), stderr: err() }).toEqual({ exit: [0, null], stderr: "" });
  const { direct, received, memory } = JSON.parse(out());
  expect(direct).toBe("ENETUNREACH");
  expect(received).toContain('\\"subject\\":\\"alice\\"');
  const token = grant?.tokens.accessToken.reveal() ?? "";
  const refresh = grant?.tokens.refreshToken?.reveal() ?? "";
  expect(token.length).toBeGreaterThan(20);
  // The heap of the client, its environment and all that it received.
  for (const secret of [token, refresh]) for (const text of [memory, received]) expect(text).not.toContain(secret);
  broker.kill("SIGTERM");
  expect(await once(broker, "exit")).toEqual([0, null]);
});
