// Programs that a run starts and must not leave behind.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

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

/** Removes one before the end: that of a database is large. */
export async function removeFolder(folder) {
  await rm(folder, { recursive: true, force: true });
  folders.delete(folder);
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

const JUMP = fileURLToPath(new URL("clock-jump.c", import.meta.url));
let library;

/** Why the clock of an engine cannot be changed here. */
export function missingJump() {
  if (process.platform !== "linux") return "the clock of one process can be changed on Linux only";
  return spawnSync("cc", ["--version"]).status === 0 ? undefined : "there is no C compiler (cc) for the changed clock";
}

/** A clock of a program that is ahead of this machine's by what was set last. */
export class JumpingClock {
  #file;

  constructor(folder) {
    if (library === undefined) {
      library = join(temporaryFolder(), "clock-jump.so");
      execFileSync("cc", ["-shared", "-fPIC", "-O2", "-o", library, JUMP]);
      // The server of PostgreSQL runs as another user.
      chmodSync(dirname(library), 0o755);
    }
    const path = join(folder, "clock-jump");
    this.#file = openSync(path, "w+");
    this.set(0);
    this.env = { LD_PRELOAD: library, CLOCK_JUMP: path };
  }

  set(ms) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(ms));
    writeSync(this.#file, bytes, 0, 8, 0);
  }

  close() {
    closeSync(this.#file);
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
