import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { allCases } from "../../hostile/all.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/** Numbers without a test of the agent client, each with its reason. */
const EXCEPTIONS: Readonly<Record<number, string>> = {
  39: "a server over stdio has no address; the agent client takes none but http and https",
  43: "guidance: a sign-in that was denied is not remembered from one call to the next",
};
const LAST = 43;

/** Numbers that a row of the hostile table shows, each with the revision. */
const HOSTILE: Readonly<Record<number, readonly [row: string, revision: string]>> = {
  4: ["P5m", "2025-06-18"],
  8: ["M2", "2026-07-28"],
  9: ["P2", "2026-07-28"],
  14: ["M17b", "2025-11-25"],
  18: ["R4b", "2026-07-28"],
  22: ["M5a", "2025-11-25"],
  29: ["C13a", "2026-07-28"],
  31: ["M7-token_endpoint", "2025-06-18"],
  32: ["P8a", "2025-06-18"],
  40: ["D9", "2026-07-28"],
};

const TITLE = /["`]\[(\d+(?:, \d+)*)\] [^"`]*?(?:\(([\d-]{10})\))?["`]/g;

/** Every requirement number in a test's title, with the revision beside it. */
async function titles(): Promise<{ number: number; revision: string }[]> {
  const found: { number: number; revision: string }[] = [];
  for (const folder of ["oauth", "store"]) {
    for (const name of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!name.endsWith(".test.ts") || name === join("flow", "requirements.test.ts")) continue;
      const source = await readFile(join(ROOT, folder, name), "utf8");
      for (const [, numbers = "", revision = ""] of source.matchAll(TITLE))
        found.push(...numbers.split(", ").map((number) => ({ number: Number(number), revision })));
    }
  }
  return found;
}

it("every requirement on a client has a test that begins with its number and ends with its revision", async () => {
  const ids = new Set(allCases.map(({ id }) => id));
  expect(Object.values(HOSTILE).filter(([row]) => !ids.has(row))).toEqual([]);
  const ofTable = Object.entries(HOSTILE).map(([number, [, revision]]) => ({ number: Number(number), revision }));
  const found = [...(await titles()), ...ofTable];
  expect(found.filter(({ revision }) => !REVISIONS.includes(revision))).toEqual([]);
  const tested = new Set(found.map(({ number }) => number));
  const missing = Array.from({ length: LAST }, (_, index) => index + 1).filter((number) => !tested.has(number));
  expect(missing).toEqual(Object.keys(EXCEPTIONS).map(Number));
});
