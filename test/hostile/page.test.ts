import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { allCases } from "./all.js";

const page = readFileSync(new URL("../../docs/security.md", import.meta.url), "utf8");
const ids = allCases.map(({ id }) => id);

it("no two cases have the same id", () => {
  expect(ids.filter((id, nth) => ids.indexOf(id) !== nth)).toEqual([]);
});

it("the page about security has rows of cases that exist", () => {
  const rows = [...page.matchAll(/^\| ([A-Z]\d[\w-]*) \|/gm)].map(([, id]) => id);
  expect(rows.filter((id) => !ids.includes(id ?? ""))).toEqual([]);
});
