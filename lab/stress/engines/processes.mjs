// Programs that a run starts and must not leave behind.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pause } from "../tools.mjs";

const PROBE_MS = 30;
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

/** A server that a run starts: `child` is its process, and `clock`, if there is one, its own. */
export class Server {
  child;

  constructor(folder, clock) {
    this.folder = folder;
    this.clock = clock;
  }

  get hasEnded() {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Starts its program. @param probe fails until it answers @returns false if it ended before that */
  async launch(command, args, options, probe) {
    const env = { ...process.env, ...this.clock?.env };
    const child = spawn(command, args, { stdio: "ignore", env, ...options });
    this.child = child;
    running.add(child);
    child.ended = once(child, "exit").then(() => running.delete(child));
    while (!this.hasEnded) {
      try {
        await probe();
        return true;
      } catch {
        await pause(PROBE_MS);
      }
    }
    return false;
  }

  /** Sends a signal to its process and the children of that. */
  signal(name) {
    const { pid } = this.child;
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

  /** Kills every process of it, as a loss of power would. */
  async kill() {
    if (this.hasEnded) return;
    this.signal("SIGKILL");
    await this.child.ended;
  }

  /** Removes its folder before the end of the run: that of a database is large. */
  async close() {
    await this.kill();
    this.clock?.close();
    await rm(this.folder, { recursive: true, force: true });
    folders.delete(this.folder);
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
