import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { runProcess, temporaryFolder } from "../helpers/cli.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 20 }).extend("report", ({ testbed }) => [
  "devices",
  "report",
  "--pool",
  testbed.sandbox.ids.pool,
]);

describe("agentauth devices report --html with a file in the working folder", () => {
  it("writes the page there, and names the file as it was typed", async ({ testbed, report }) => {
    const cwd = temporaryFolder();
    const run = (...flags: string[]) =>
      runProcess([...report, "--html", "out.html", ...flags], { cwd, env: testbed.env });
    const first = await run();
    expect([first.code, first.stdout, first.stderr]).toEqual([0, "", 'wrote "out.html": 20 devices\n']);
    expect(readdirSync(cwd)).toEqual(["out.html"]);
    expect(readFileSync(join(cwd, "out.html"), "utf8")).toContain("<!doctype html>");
    writeFileSync(join(cwd, "out.html"), "mine");
    const second = await run();
    expect([second.code, second.stderr]).toEqual([
      2,
      'error: --html "out.html" already exists\nhint: give another file, or remove it: rm out.html\n',
    ]);
    expect(readFileSync(join(cwd, "out.html"), "utf8")).toBe("mine");
  });
});
