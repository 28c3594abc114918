import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { HostileCase } from "./case.js";

const here = new URL(".", import.meta.url);
const page = readFileSync(new URL("../../docs/security.md", here), "utf8");

/** Every case of every table. */
async function allCases(): Promise<HostileCase[]> {
  const files = readdirSync(new URL("cases/", here)).map((name) => name.replace(/\.ts$/, ".js"));
  const modules = (await Promise.all(files.map((name) => import(`./cases/${name}`)))) as Record<string, unknown>[];
  return modules.flatMap((module) => Object.values(module).filter(Array.isArray)).flat() as HostileCase[];
}

it("no two cases have the same id", async () => {
  const ids = (await allCases()).map(({ id }) => id);
  expect(ids.filter((id, nth) => ids.indexOf(id) !== nth)).toEqual([]);
});

it("the page about security has a row for every case, and no other", async () => {
  const ids = (await allCases()).map(({ id }) => id);
  const rows = [...page.matchAll(/^\| ([A-Z]\d[\w-]*) \|/gm)].map(([, id]) => id);
  expect(rows.sort()).toEqual(ids.sort());
});
