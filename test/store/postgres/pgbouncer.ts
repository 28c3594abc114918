import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accountOf, answers, type PostgresServer } from "./postgres-server.js";

const PROGRAM = "/usr/sbin/pgbouncer";

/** Why no pooler can be started here, for the title of a skipped test. */
export const MISSING_POOLER = existsSync(PROGRAM) ? "" : ` (skipped: no ${PROGRAM})`;

/** A pooler in front of a server. */
export interface Pooler {
  readonly options: PostgresServer["options"];
  close(): Promise<void>;
}

/** Starts a PgBouncer with few connections to the server, so that clients share them. */
export async function startPgBouncer(
  server: PostgresServer["options"],
  mode: "session" | "transaction",
): Promise<Pooler> {
  // The path of a Unix socket is short.
  const folder = mkdtempSync(join(tmpdir(), "aa-pb-"));
  const account = accountOf(folder);
  const settings = join(folder, "pgbouncer.ini");
  const { host, port, user } = server;
  const lines = [
    `[databases]\n* = host=${host} port=${port} user=${user}`,
    `[pgbouncer]\npool_mode = ${mode}\ndefault_pool_size = 20\nauth_type = any\nlisten_port = 6432`,
    `unix_socket_dir = ${folder}\nignore_startup_parameters = extra_float_digits`,
  ];
  writeFileSync(settings, `${lines.join("\n")}\n`);
  const pooler = spawn(PROGRAM, ["-q", settings], { ...account, cwd: folder, stdio: "ignore" });
  const ended = once(pooler, "exit");
  const onExit = () => pooler.kill("SIGKILL");
  process.once("exit", onExit);
  const options = { ...server, host: folder, port: 6432 };
  const close = async () => {
    pooler.kill("SIGKILL");
    await ended;
    process.off("exit", onExit);
    rmSync(folder, { recursive: true, force: true });
  };
  if (!(await answers(options, pooler)))
    throw new Error(`${PROGRAM} ended with ${pooler.exitCode ?? pooler.signalCode}`);
  return { options, close };
}
