import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** A file of lab/. A test that runs in a process is a bundle in another folder, but its working folder is that of the project. */
export const inLab = (path: string) => pathToFileURL(resolve("lab", path));

/** Whether the packages of lab/ are installed, which `npm ci` leaves out. */
export const HAS_LAB = existsSync(inLab("node_modules/.package-lock.json"));

/** Says of tests that they are left out where those packages are missing. */
export function sayWithoutLab(tests: string): void {
  if (!HAS_LAB) process.stderr.write(`SKIPPED: ${tests}: npm ci --prefix lab\n`);
}

/** Loads a package of lab/; undefined where it is not installed. */
export async function labPackage<T>(name: string): Promise<T | undefined> {
  if (!HAS_LAB) return undefined;
  const { PACKAGES } = (await import(/* @vite-ignore */ inLab("packages.mjs").href)) as {
    PACKAGES: Readonly<Record<string, () => Promise<unknown>>>;
  };
  return (await PACKAGES[name]?.()) as T;
}
