import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { projectFiles } from "./helpers/project-files.js";

const HELPER = join("test", "helpers", "systems.ts");
/** Suites that are run on Linux alone, by scripts of their own. */
const LINUX_SUITES = ["hostile"];
const files = projectFiles("test")
  .filter((path) => path.endsWith(".ts") && !LINUX_SUITES.some((suite) => path.includes(suite)))
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
