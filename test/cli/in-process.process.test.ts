import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Desk, startDesk } from "../flow/support.js";
import { collect, runCli, runProcess, startCli, startProcess, temporaryFolder, until } from "../helpers/cli.js";

let desk: Desk;
beforeAll(async () => {
  desk = await startDesk({ devices: 3 });
});
afterAll(() => desk.close());

const setUp = () => ({
  AGENTAUTH_BASE_URL: desk.sandbox.baseUrl,
  AGENTAUTH_API_TOKEN: desk.sandbox.apiToken,
  AGENTAUTH_HOME: temporaryFolder(),
});

describe("a run in the test's process and one in a separate process", () => {
  it.each<[string, () => string[]]>([
    ["the version", () => ["--version"]],
    ["the help of the program", () => ["--help"]],
    ["the help of a command", () => ["devices", "list", "--help"]],
    ["a wrong flag", () => ["devices", "list", "--lmit", "3"]],
    ["a list as JSON", () => [...desk.devices, "-o", "json"]],
    ["a list as a table", () => [...desk.devices, "-o", "table"]],
    ["a list through jq", () => [...desk.devices, "--jq", ".[0].id"]],
    ["a token without a login", () => ["token", desk.url, "--no-input"]],
    ["the settings", () => ["config", "list"]],
    ["the first steps", () => []],
  ])("print and return the same: %s", async (_what, args) => {
    const env = setUp();
    expect(await runCli(args(), { env })).toEqual(await runProcess(args(), { env }));
  });

  it("end with the same exit code on a signal", async () => {
    const endings = [startCli, startProcess].map(async (start) => {
      const child = start([...desk.devices, "--watch=60", "-o", "ndjson"], { env: setUp() });
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
