// Programs that a run starts and must not leave behind.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const running = new Set();
const folders = new Set();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder that is removed at the end. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "aa-fleet-"));
  folders.add(folder);
  return folder;
}

/** Starts a program. `ended` resolves when it has exited. */
export function start(command, args, options) {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "ignore"], ...options });
  running.add(child);
  child.ended = once(child, "exit").then(() => running.delete(child));
  return child;
}

/** Sends a signal to a program and its children. */
export function signalAll({ pid }, name) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  for (const each of [pid, ...children.map(Number)]) {
    try {
      process.kill(each, name);
    } catch (error) {
      // It has exited by itself.
      if (error.code !== "ESRCH") throw error;
    }
  }
}

/** A port of loopback that was free. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
