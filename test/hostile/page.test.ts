import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { allCases } from "./all.js";

const page = readFileSync(new URL("../../docs/security-table.md", import.meta.url), "utf8");
const ids = allCases.map(({ id }) => id);

it("no two cases have the same id", () => {
  expect(ids.filter((id, nth) => ids.indexOf(id) !== nth)).toEqual([]);
});

it("docs/security-table.md has a row for every case, and no other row (npm run hostile -- --write)", ({ task }) => {
  task.meta.hostileIds = ids;
  const rows = [...page.matchAll(/^\| ([A-Z]\d[\w-]*) \|/gm)].map(([, id]) => id ?? "");
  expect(rows.toSorted()).toEqual(ids.toSorted());
});
