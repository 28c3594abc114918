import { expect, it } from "vitest";
import { allCases } from "./all.js";

const ids = allCases.map(({ id }) => id);

it("no two cases have the same id", ({ task }) => {
  task.meta.hostileIds = ids;
  expect(ids.filter((id, nth) => ids.indexOf(id) !== nth)).toEqual([]);
});
