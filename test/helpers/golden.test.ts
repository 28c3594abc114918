import { expect, it } from "vitest";
import { goldenText, parseGolden } from "./golden.js";
import { projectFiles } from "./project-files.js";

const SNAPSHOTS = new Map([
  ["jwt: a token > is refused 1", '"invalid_token (auth, 401): no"'],
  ["jwt: a token > is refused 2", '"invalid_token (auth, 401): no"'],
  ["jwt: a token > has 10 10", '\n"two\n\nlines with \\\\ and "quotes" "\n'],
  ["jwt: a token > has an end 1", '\n"two\n\n"\n'],
  ["other: a token\nwith a \\ line break 1", '"invalid_token (auth, 401): no"'],
  ["other: reasons 1", '\n[\n  "a",\n  "a",\n  "3 × b",\n]\n'],
  ["other: an object 1", '\n{\n  "a": 1,\n}\n'],
  ["other: nothing 1", "undefined"],
]);

it("a golden file has each snapshot, and a text that several tests compare once", () => {
  const text = goldenText(SNAPSHOTS);
  expect(parseGolden(text)).toEqual(SNAPSHOTS);
  expect(text.match(/invalid_token/g)).toHaveLength(1);
  expect(text).toContain("\n- jwt: a token > is refused 1,2\n");
  expect(text).toContain("\n> two\n> \n- jwt: a token > has an end 1\n");
  expect(text).toContain("\n* 2 × a\n* 1 × 3 × b\n");
});

it("no test has snapshots of another kind", () => {
  expect(projectFiles("test").filter((path) => path.endsWith(".snap"))).toEqual([]);
});
