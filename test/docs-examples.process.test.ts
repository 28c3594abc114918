import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("docs/testing.md has a first program that passes as it is shown", () => {
  const program = /^```js\n(.*?)^```$/ms.exec(readFileSync("docs/testing.md", "utf8"))?.[1] ?? "";
  expect(program).not.toBe("");
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});
