import { readdirSync } from "node:fs";
import { join } from "node:path";
import { FileLeases } from "../../../src/store/leases/file-leases.js";

/** The name of the lease that the tests compete for. */
export const NAME = "a name";

export const leasesOf = (home: string) => new FileLeases(join(home, "claims"));

export const leaseFilesOf = (home: string) => readdirSync(join(home, "claims")).sort();

/** The path of the only lock file. */
export function lockFileOf(home: string): string {
  const [name, ...more] = leaseFilesOf(home).filter((one) => one.endsWith(".claim"));
  if (name === undefined || more.length > 0) throw new Error("one lock file was expected");
  return join(home, "claims", name);
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
