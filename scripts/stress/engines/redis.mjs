// A redis-server on loopback.
import { spawnSync } from "node:child_process";
import { createClient } from "redis";
import { must, until } from "../invariant.mjs";
import { freePort, JumpingClock, removeFolder, signalAll, start, temporaryFolder } from "./processes.mjs";

/** Why no redis-server can be started here. */
export function missingRedis() {
  return spawnSync("redis-server", ["--version"]).status === 0 ? undefined : "redis-server is not installed";
}

/**
 * Starts a server that writes each change to its disk before it answers.
 *
 * @param options.replicaOf the port of the primary
 * @param options.jumps whether its clock can jump
 */
export async function startRedis({ replicaOf, jumps = false } = {}) {
  const folder = temporaryFolder();
  const clock = jumps ? new JumpingClock(folder) : undefined;
  const replica = replicaOf === undefined ? [] : ["--replicaof", `127.0.0.1 ${replicaOf}`];
  const fixed = ["--dir", folder, "--bind", "127.0.0.1", "--save", "", "--rdbcompression", "no"];
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"];
  let server;
  for (let tries = 0; server === undefined && tries < 10; tries++)
    server = await launch(await freePort(), [...fixed, ...durable, ...replica], clock);
  must(server !== undefined, "redis-server does not start");
  return new Redis({ folder, server, args: [...fixed, ...durable], clock });
}

class Redis {
  name = "Redis";
  #server;
  #args;

  constructor({ folder, server, args, clock }) {
    this.folder = folder;
    this.clock = clock;
    this.#server = server;
    this.#args = args;
    this.target = server.port;
    this.address = { kind: "redis", port: server.port };
  }

  signal(name) {
    signalAll(this.#server.child, name);
  }

  async kill() {
    if (this.#server.child.exitCode !== null || this.#server.child.signalCode !== null) return;
    this.signal("SIGKILL");
    await this.#server.child.ended;
  }

  /** Starts it again with its data. */
  async restart() {
    this.#server = await launch(this.address.port, this.#args, this.clock);
    must(this.#server !== undefined, "redis-server does not start again");
  }

  /** Sends one command over a connection of its own. */
  async command(...args) {
    const client = await openClient(this.target);
    try {
      return await client.sendCommand(args);
    } finally {
      client.destroy();
    }
  }

  /** Resolves when it has all data of its primary. */
  async synced() {
    const isUp = async () => String(await this.command("INFO", "replication")).includes("master_link_status:up");
    await until(isUp, "a replica");
  }

  /** Makes the replica a primary, without the writes that have not arrived. */
  async promote() {
    await this.command("REPLICAOF", "NO", "ONE");
  }

  async close() {
    await this.kill();
    this.clock?.close();
    await removeFolder(this.folder);
  }
}

/** Resolves when the server answers; undefined if it ended before. */
async function launch(port, args, clock) {
  const env = { ...process.env, ...clock?.env };
  const child = start("redis-server", ["--port", String(port), ...args], { env });
  while (child.exitCode === null && child.signalCode === null) {
    try {
      const client = await openClient(port);
      await client.sendCommand(["PING"]).finally(() => client.destroy());
      return { child, port };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return undefined;
}

async function openClient(port) {
  const client = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: false } });
  client.on("error", () => {});
  return client.connect();
}
