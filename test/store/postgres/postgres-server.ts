import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";

const VERSIONS = "/usr/lib/postgresql";

/** The folder of the newest installed server of Debian. */
const PROGRAMS = programs();

/** Why no server can be started here, for the title of a skipped test. */
export const MISSING_SERVER = PROGRAMS ? "" : ` (skipped: no ${VERSIONS}/*/bin/postgres)`;

/** A server of its own, on a Unix socket in a temporary folder. */
export interface PostgresServer {
  /** For `pg` and, apart from `database`, for `postgres`. */
  readonly options: { readonly host: string; readonly port: number; readonly user: string; readonly database: string };
  /** Sends a signal to the server and to every process of it. */
  signal(signal: NodeJS.Signals): void;
  /** Kills every process of the server, as a loss of power would. */
  kill(): Promise<void>;
  /** Starts a server that was killed; resolves when it answers. */
  start(): Promise<void>;
  /** Ends the server and removes its files. */
  close(): Promise<void>;
}

/** Creates a database cluster and starts its server. */
export async function startPostgres(...settings: readonly string[]): Promise<PostgresServer> {
  // The path of a Unix socket is short.
  const folder = mkdtempSync(join(tmpdir(), "aa-pg-"));
  const account = accountOf(folder);
  const data = join(folder, "data");
  const args = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  execFileSync(join(PROGRAMS ?? "", "initdb"), args, {
    ...account,
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const options = { host: folder, port: 5432, user: "postgres", database: "postgres" };
  let server: ChildProcess | undefined;
  const processes = () => {
    const pid = server?.pid ?? 0;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return [pid, ...children.split(" ").filter(Boolean).map(Number)];
  };
  const signal = (name: NodeJS.Signals) => {
    for (const pid of processes()) sendTo(pid, name);
  };
  const kill = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    signal("SIGKILL");
    await ended;
  };
  const start = async () => {
    for (;;) {
      const flags = ["-D", data, "-k", folder, "-h", "", ...settings.flatMap((setting) => ["-c", setting])];
      server = spawn(join(PROGRAMS ?? "", "postgres"), flags, { ...account, cwd: folder, stdio: "ignore" });
      if (await answers(options, server)) return;
    }
  };
  const onExit = () => server?.kill("SIGKILL");
  process.once("exit", onExit);
  await start();
  return {
    options,
    signal,
    kill,
    start,
    async close() {
      await kill();
      process.off("exit", onExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** False if the server ended: processes of one that was killed may still hold its memory. */
export async function answers(options: PostgresServer["options"], server: ChildProcess): Promise<boolean> {
  while (server.exitCode === null && server.signalCode === null) {
    const client = new pg.Client(options);
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("SELECT 1");
      return true;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    } finally {
      await client.end().catch(() => {});
    }
  }
  return false;
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}

/** The server refuses to run as root: Debian has a user for it. */
export function accountOf(folder: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  const account = { uid: id("-u"), gid: id("-g") };
  chownSync(folder, account.uid, account.gid);
  chmodSync(folder, 0o755);
  return account;
}

function programs(): string | undefined {
  if (!existsSync(VERSIONS)) return undefined;
  const versions = readdirSync(VERSIONS).sort((one, other) => Number(other) - Number(one));
  return versions.map((version) => join(VERSIONS, version, "bin")).find((bin) => existsSync(join(bin, "postgres")));
}
