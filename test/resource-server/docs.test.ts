import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

it("the page about resource servers has every option", () => {
  const rows = read("docs/resource-server.md").match(/^\| .*$/gm) ?? [];
  const named = rows.flatMap((row) => row.split("|")[1]?.match(/`\w+`/g) ?? []).map((cell) => cell.slice(1, -1));
  const options = [...read("src/resource-server/options.ts").matchAll(/^ {2}(\w+)\??:/gm)].map(
    ([, name]) => name ?? "",
  );
  expect(options.length).toBeGreaterThan(20);
  expect([...options, "fetch", "random"].filter((name) => !named.includes(name))).toEqual([]);
});
