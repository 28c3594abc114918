import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { collect, temporaryFolder, until } from "./cli.js";
import { ON_LINUX } from "./systems.js";

const PROGRAMS = ["dbus-daemon", "dbus-send", "gnome-keyring-daemon"];
const missing = PROGRAMS.filter((program) => {
  return !(process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
});

/** Whether a Secret Service can be started here, apart from any that the user has. */
export const HAS_SECRET_SERVICE = ON_LINUX && missing.length === 0;

if (!HAS_SECRET_SERVICE) {
  process.stderr.write(
    `SKIPPED: the tests of a real keychain need ${missing.join(" and ") || "Linux"}: apt-get install -y dbus gnome-keyring\n`,
  );
}

/** A message bus with GNOME's keyring on it, known only to programs with its environment. */
export interface SecretService {
  /** For a process that is to find it. */
  readonly env: { readonly DBUS_SESSION_BUS_ADDRESS: string; readonly PATH: string };
  /** Starts the keyring again without its password: it is locked from here on. */
  lock(): Promise<void>;
  close(): Promise<void>;
}

const started = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});

/** Starts a Secret Service whose only keyring is empty and unlocked. */
export async function startSecretService(): Promise<SecretService> {
  const home = temporaryFolder();
  const own = { PATH: process.env["PATH"] ?? "", HOME: home, XDG_RUNTIME_DIR: home };
  const bus = run("dbus-daemon", ["--session", "--nofork", "--print-address"], own);
  const said = collect(bus.stdout);
  await until(() => said().includes("\n") || bus.exitCode !== null);
  const env = { PATH: own.PATH, DBUS_SESSION_BUS_ADDRESS: said().trim() };
  const daemon = (mode: string) =>
    run("gnome-keyring-daemon", ["--foreground", "--components=secrets", mode], { ...own, ...env });

  let keyring = daemon("--unlock");
  keyring.stdin?.end("password");
  await ready(env);
  return {
    env,
    async lock() {
      await end(keyring);
      keyring = daemon("--start");
      await ready(env);
    },
    async close() {
      await end(keyring);
      await end(bus);
    },
  };
}

function run(program: string, args: string[], env: Record<string, string>): ChildProcess {
  const child = spawn(program, args, { env, stdio: ["pipe", "pipe", "ignore"] });
  started.add(child);
  child.once("exit", () => started.delete(child));
  return child;
}

/** Waits until the keyring answers on the bus. */
async function ready(env: SecretService["env"]): Promise<void> {
  const name = "org.freedesktop.secrets";
  const args = ["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus"];
  for (;;) {
    const asking = run("dbus-send", [...args, "org.freedesktop.DBus.NameHasOwner", `string:${name}`], env);
    const answer = collect(asking.stdout);
    await once(asking, "close");
    if (answer().includes("boolean true")) return;
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  await once(child, "exit");
}
