import { once } from "node:events";
import { describe, expect } from "vitest";
import type { Harness } from "../flow/support.js";
import { runCli, runProcess, startCli, startProcess, until } from "../helpers/cli.js";
import { runTest } from "./in-process-support.js";

const it = runTest();

describe("a run in the test's process and one in a separate process", () => {
  it.for<[string, (harness: Harness) => string[]]>([
    ["the version", () => ["--version"]],
    ["the help of the program", () => ["--help"]],
    ["the help of a command", () => ["devices", "list", "--help"]],
    ["a wrong flag", () => ["devices", "list", "--lmit", "3"]],
    ["a list as JSON", (harness) => [...harness.devices, "-o", "json"]],
    ["a list as a table", (harness) => [...harness.devices, "-o", "table"]],
    ["a list through jq", (harness) => [...harness.devices, "--jq", ".[0].id"]],
    ["a token without a login", (harness) => ["token", harness.url, "--no-input"]],
    ["the settings", () => ["config", "list"]],
    ["the first steps", () => []],
  ])("print and return the same: %s", async ([, args], { harness, newEnv }) => {
    const env = newEnv();
    expect(await runCli(args(harness), { env })).toEqual(await runProcess(args(harness), { env }));
  });

  it("end with the same exit code on a signal", async ({ harness, faults, newEnv }) => {
    faults.add({ kind: "slow-headers", ms: 60_000, times: 0 });
    const runs = [startCli, startProcess].map((start) => start(harness.devices, { env: newEnv() }));
    await until(() => faults.list()[0]?.fired === 2);
    for (const run of runs) run.kill("SIGHUP");
    expect(await Promise.all(runs.map((run) => once(run, "close")))).toEqual([
      [129, null],
      [129, null],
    ]);
  });
});
