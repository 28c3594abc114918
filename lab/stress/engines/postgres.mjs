// A PostgreSQL server on a Unix socket.

import { execFile, execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { storeSql } from "../dist.mjs";
import { until } from "../tools.mjs";
import { JumpingClock, Server, temporaryFolder } from "./processes.mjs";

const VERSIONS = "/usr/lib/postgresql";

/** Why no server can be started here. */
export function missingPostgres() {
  return programs() === undefined ? `PostgreSQL is not installed: no ${VERSIONS}/*/bin/postgres` : undefined;
}

/**
 * Creates a database cluster with the tables of the store, and starts its server.
 *
 * @param options.jumps whether its clock can jump
 * @param options.standbyOf a server: it becomes an asynchronous standby of this one
 */
export async function startPostgres({ jumps = false, standbyOf } = {}) {
  const folder = temporaryFolder();
  const account = accountOf(folder);
  const data = ["-D", join(folder, "data"), "-U", "postgres"];
  const [program, flags] = standbyOf
    ? ["pg_basebackup", ["-h", standbyOf.folder, "-R", "-X", "stream", "-c", "fast", "--no-sync"]]
    : ["initdb", ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]];
  // This process is the issuer of other trials, which must not stand still.
  await promisify(execFile)(join(programs(), program), [...data, ...flags], { ...account, cwd: folder });
  const postgres = new Postgres(folder, account, jumps ? new JumpingClock(folder) : undefined);
  await postgres.restart();
  if (!standbyOf) await postgres.command(storeSql());
  return postgres;
}

class Postgres extends Server {
  name = "PostgreSQL";
  #account;

  constructor(folder, account, clock) {
    super(folder, clock);
    this.#account = account;
    this.target = join(folder, ".s.PGSQL.5432");
    this.address = { kind: "postgres", options: { host: folder, port: 5432, user: "postgres", database: "postgres" } };
  }

  /** Starts it with its data; resolves when it answers. */
  async restart() {
    const flags = ["-D", join(this.folder, "data"), "-k", this.folder, "-h", ""];
    const options = { ...this.#account, cwd: this.folder };
    const start = () => this.launch(join(programs(), "postgres"), flags, options, () => this.command("SELECT 1"));
    // One that ends at once finds processes of the killed one, which still hold its memory.
    while (!(await start()));
  }

  /** Runs SQL over a connection of its own. */
  async command(sql) {
    const client = new pg.Client({ ...this.address.options, user: "postgres" });
    client.on("error", () => {});
    try {
      await client.connect();
      return await client.query(sql);
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** All that is stored, as SQL. */
  dump() {
    const flags = ["-h", this.folder, "-U", "postgres", "postgres"];
    return execFileSync(join(programs(), "pg_dump"), flags, { encoding: "utf8", maxBuffer: 2 ** 28 });
  }

  /** Resolves when this standby has all data of its primary. */
  async synced(primary) {
    const [{ lsn }] = (await primary.command("SELECT pg_current_wal_lsn() AS lsn")).rows;
    const hasAll = async () => (await this.command(`SELECT pg_last_wal_replay_lsn() >= '${lsn}' AS has`)).rows[0].has;
    await until(hasAll, "a standby");
  }

  /** Makes the standby a primary, without the writes that have not arrived. */
  async promote() {
    await this.command("SELECT pg_promote(true)");
  }
}

/** The server refuses to run as root: Debian has a user for it. */
function accountOf(folder) {
  if (process.getuid() !== 0) return {};
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" })));
  chownSync(folder, uid, gid);
  chmodSync(folder, 0o755);
  return { uid, gid };
}

/** The folder of the newest installed server of Debian. */
function programs() {
  if (!existsSync(VERSIONS)) return undefined;
  const versions = readdirSync(VERSIONS).sort((one, other) => Number(other) - Number(one));
  return versions.map((version) => join(VERSIONS, version, "bin")).find((bin) => existsSync(join(bin, "postgres")));
}
