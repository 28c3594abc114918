import { once } from "node:events";
import { describe, expect } from "vitest";
import type { Desk } from "../flow/support.js";
import { runCli, runProcess, startCli, startProcess, until } from "../helpers/cli.js";
import { runTest } from "./in-process-support.js";

const it = runTest();

describe("a run in the test's process and one in a separate process", () => {
  it.for<[string, (desk: Desk) => string[]]>([
    ["the version", () => ["--version"]],
    ["the help of the program", () => ["--help"]],
    ["the help of a command", () => ["devices", "list", "--help"]],
    ["a wrong flag", () => ["devices", "list", "--lmit", "3"]],
    ["a list as JSON", (desk) => [...desk.devices, "-o", "json"]],
    ["a list as a table", (desk) => [...desk.devices, "-o", "table"]],
    ["a list through jq", (desk) => [...desk.devices, "--jq", ".[0].id"]],
    ["a token without a login", (desk) => ["token", desk.url, "--no-input"]],
    ["the settings", () => ["config", "list"]],
    ["the first steps", () => []],
  ])("print and return the same: %s", async ([, args], { desk, newEnv }) => {
    const env = newEnv();
    expect(await runCli(args(desk), { env })).toEqual(await runProcess(args(desk), { env }));
  });

  it("end with the same exit code on a signal", async ({ desk, faults, newEnv }) => {
    faults.add({ kind: "slow-headers", ms: 60_000, times: 0 });
    const runs = [startCli, startProcess].map((start) => start(desk.devices, { env: newEnv() }));
    await until(() => faults.list()[0]?.fired === 2);
    for (const run of runs) run.kill("SIGHUP");
    expect(await Promise.all(runs.map((run) => once(run, "close")))).toEqual([
      [129, null],
      [129, null],
    ]);
  });
});
