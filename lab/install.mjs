// Installs packages that `npm ci` leaves out, where a program needs them.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join, relative } from "node:path";

const lab = import.meta.dirname;
/** The packages of the lab. */
export const modules = join(lab, "node_modules");
/** Node as some of them need it. */
export const node = join(modules, "node", "bin", "node");

/**
 * Installs the packages of a lock file where they are missing or older than it, and says so.
 * @param folder has the lock file @param command of npm @returns whether they are there
 */
export function installPackages(folder = lab, command = ["ci"]) {
  const installed = join(folder, "node_modules", ".package-lock.json");
  const changedAt = (path) => statSync(path).mtimeMs;
  if (existsSync(installed) && changedAt(installed) >= changedAt(join(folder, "package-lock.json"))) return true;
  const path = relative(process.cwd(), folder);
  console.error(`${join(path, "node_modules")} is missing or old: npm ${command.join(" ")} --prefix ${path}`);
  const args = [...command, "--loglevel=error", "--prefix", folder];
  const { status } = spawnSync("npm", args, {
    stdio: ["ignore", "inherit", "inherit"],
    shell: process.platform === "win32",
  });
  return status === 0;
}
