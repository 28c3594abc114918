// A redis-server on loopback.

import { spawnSync } from "node:child_process";
import { createClient } from "redis";
import { Broken, must, until } from "../tools.mjs";
import { freePort, JumpingClock, Server, temporaryFolder } from "./processes.mjs";

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
  const redis = new Redis(folder, jumps ? new JumpingClock(folder) : undefined);
  const replica = replicaOf === undefined ? [] : ["--replicaof", `127.0.0.1 ${replicaOf}`];
  // Another program may take the port that was free.
  for (let tries = 0; tries < 10; tries++) if (await redis.listen(await freePort(), replica)) return redis;
  throw new Broken("redis-server does not start");
}

class Redis extends Server {
  name = "Redis";

  /** Starts it at a port. @returns false if it cannot listen there */
  listen(port, more = []) {
    this.target = port;
    this.address = { ...this.address, kind: "redis", port };
    const fixed = ["--dir", this.folder, "--bind", "127.0.0.1", "--save", "", "--rdbcompression", "no"];
    const durable = ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"];
    const flags = ["--port", String(port), ...fixed, ...durable, ...more];
    return this.launch("redis-server", flags, {}, () => this.command("PING"));
  }

  /** Starts it again with its data. */
  async restart() {
    must(await this.listen(this.target), "redis-server does not start again");
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
}

async function openClient(port) {
  const client = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: false } });
  client.on("error", () => {});
  return client.connect();
}
