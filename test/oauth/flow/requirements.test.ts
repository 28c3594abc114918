import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/** Numbers without a test of the agent client, each with its reason. */
const EXCEPTIONS: Readonly<Record<number, string>> = {
  39: "a server over stdio has no address; the agent client takes none but http and https",
  43: "guidance: a sign-in that was denied is not remembered from one call to the next",
};
const LAST = 43;

/** Every requirement number in a test's title, with the revision beside it. */
async function titles(): Promise<{ number: number; revision: string }[]> {
  const found: { number: number; revision: string }[] = [];
  for (const folder of ["oauth", "store"]) {
    for (const name of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!name.endsWith(".test.ts") || name === join("flow", "requirements.test.ts")) continue;
      const source = await readFile(join(ROOT, folder, name), "utf8");
      for (const [, number, revision] of source.matchAll(/["`]\[(\d+)\] [^"`]*?(?:\(([\d-]{10})\))?["`]/g)) {
        found.push({ number: Number(number), revision: revision ?? "" });
      }
    }
  }
  return found;
}

it("every requirement on a client has a test that begins with its number and ends with its revision", async () => {
  const found = await titles();
  expect(found.filter(({ revision }) => !REVISIONS.includes(revision))).toEqual([]);
  const tested = new Set(found.map(({ number }) => number));
  const missing = Array.from({ length: LAST }, (_, index) => index + 1).filter((number) => !tested.has(number));
  expect(missing).toEqual(Object.keys(EXCEPTIONS).map(Number));
});
