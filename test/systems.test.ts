import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const HELPER = join("test", "helpers", "systems.ts");
/** Suites that are run on Linux alone, by scripts of their own, and what others wrote. */
const LEFT_OUT = ["hostile", "node_modules"];
const files = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !LEFT_OUT.some((part) => path.includes(part)))
  .map((path) => join("test", path))
  .filter((path) => path !== HELPER && !path.endsWith("systems.test.ts"));

it("tests ask for their system by the names of one helper", () => {
  const asking = files.filter((path) => readFileSync(path, "utf8").includes("process.platform"));
  expect(asking).toEqual([]);
});

it("tests that need the files or programs of Linux say so", () => {
  const needing = /readFileSync\(`\/proc|"\/dev\/full"|"mkfifo"/;
  const naming = /ON_LINUX|ON_WINDOWS|existsSync\("\/|MISSING_SERVER/;
  const silent = files.filter((path) => {
    const text = readFileSync(path, "utf8");
    return needing.test(text) && !naming.test(text);
  });
  expect(silent).toEqual([]);
});
