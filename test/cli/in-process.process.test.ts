import { once } from "node:events";
import { describe, expect } from "vitest";
import type { Desk } from "../flow/support.js";
import { collect, runCli, runProcess, startCli, startProcess, until } from "../helpers/cli.js";
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

  it("end with the same exit code on a signal", async ({ desk, newEnv }) => {
    const endings = [startCli, startProcess].map(async (start) => {
      const child = start([...desk.devices, "--watch=60", "-o", "ndjson"], { env: newEnv() });
      const out = collect(child.stdout);
      await until(() => out().split("\n").length > 3);
      child.kill("SIGHUP");
      return once(child, "close");
    });
    expect(await Promise.all(endings)).toEqual([
      [129, null],
      [129, null],
    ]);
  });
});
