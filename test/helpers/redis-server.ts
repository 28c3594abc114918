import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { temporaryFolder } from "./folder.js";
import { freePort } from "./port.js";

/** Whether `redis-server` is installed on this machine. */
export const HAS_REDIS = spawnSync("redis-server", ["--version"]).status === 0;

/** A real `redis-server` on loopback, with an append-only file that it writes before each answer. */
export interface RedisServer {
  readonly port: number;
  /** Sends a signal; after SIGKILL the process is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again on its port, with its data. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** @param options further options, such as `["--maxmemory-policy", "allkeys-lru"]` */
export async function startRedis(options: readonly string[] = []): Promise<RedisServer> {
  const folder = temporaryFolder();
  const fixed = [
    "--dir",
    folder,
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
  ];
  let port = 0;
  let child: ChildProcess | undefined;
  // Another process may take the port first.
  for (let tries = 0; child === undefined && tries < 20; tries += 1) {
    port = await freePort();
    child = await run(["--port", String(port), ...fixed, ...options]);
  }
  if (child === undefined) throw new Error("redis-server does not start");
  let running = child;
  const kill = async (signal: NodeJS.Signals) => {
    const ended = once(running, "exit");
    if (running.exitCode !== null || running.signalCode !== null) return;
    running.kill(signal);
    if (signal === "SIGKILL") await ended;
  };
  return {
    port,
    kill,
    async restart() {
      const again = await run(["--port", String(port), ...fixed, ...options]);
      if (again === undefined) throw new Error(`redis-server does not start again on port ${port}`);
      running = again;
    },
    close: () => kill("SIGKILL"),
  };
}

/** Resolves when the server takes connections; undefined if it ended before. */
async function run(args: readonly string[]): Promise<ChildProcess | undefined> {
  const child = spawn("redis-server", args, { stdio: ["ignore", "pipe", "inherit"] });
  const stop = () => child.kill("SIGKILL");
  process.once("exit", stop);
  child.once("exit", () => process.off("exit", stop));
  return new Promise((resolve) => {
    let log = "";
    child.stdout.on("data", (chunk) => {
      log += chunk;
      if (log.includes("Ready to accept connections")) resolve(child);
    });
    child.once("exit", () => resolve(undefined));
  });
}
