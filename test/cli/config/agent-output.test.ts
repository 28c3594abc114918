import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { isNewSession } from "../../../src/cli/runtime/agent-mode.js";
import { linesOf, type RunOptions, runCli, temporaryFolder } from "../../helpers/cli.js";
import { testbedTest } from "../../helpers/testbed-test.js";

const AGENT = { AGENTAUTH_AGENT: "1" };
const SHORT = ["id", "title", "status", "session_type", "last_seen"];

const it = testbedTest({ devices: 120 }).extend("run", ({ testbed }) => {
  return (args: readonly string[], more: RunOptions = {}) =>
    testbed.run(args, { ...more, env: { ...AGENT, ...more.env } });
});
const noticeOf = (stderr: string) => JSON.parse(linesOf(stderr).at(-1) ?? "");

describe("a list for an AI agent", () => {
  it.for<[string[], Record<string, string>]>([
    [[], AGENT],
    [["--brief", "--json"], {}],
    [["--brief", "-o", "json"], AGENT],
  ])(
    "that names no form, and with --brief, is 50 items in few columns, and the command for the next ones: %j",
    async ([flags, env], { testbed }) => {
      const run = (args: readonly string[]) => testbed.run(args, { env });
      const { code, stdout, stderr } = await run([...testbed.devices, ...flags]);
      const items = JSON.parse(stdout) as Record<string, unknown>[];
      expect([code, items.length]).toEqual([0, 50]);
      expect(Object.keys(items[0] ?? {})).toEqual(expect.arrayContaining(["id", "title"]));
      expect(Object.keys(items[0] ?? {}).every((name) => SHORT.includes(name.split(".")[0] ?? ""))).toBe(true);
      const { next, ...rest } = noticeOf(stderr);
      expect(rest).toMatchObject({ shown: 50, total: 120, columns: expect.stringContaining("id,title,status") });
      expect(next).toEqual({ offset: 50, command: expect.stringMatching(/^agentauth devices list .*--offset 50$/) });
      const second = await run(next.command.split(" ").slice(1));
      expect(noticeOf(second.stderr)).toMatchObject({ shown: 50, total: 120, next: { offset: 100 } });
    },
  );

  it.for([["--json"], ["-o", "json"], ["-o", "ndjson"], ["-o", "plain"], ["--jq", ".[].id"], ["--columns", "id"]])(
    "is what it is for everyone with %j",
    async (flags, { testbed, run }) => {
      const args = [...testbed.devices, ...flags];
      const { code, stdout, stderr } = await run(args);
      expect({ code, stdout, stderr }).toEqual({ ...(await testbed.run(args)), signal: undefined });
      expect(flags[1] === "json" || flags[0] === "--json" ? JSON.parse(stdout) : linesOf(stdout)).toHaveLength(120);
    },
  );

  it("has as many items as --limit says, whole and as JSON", async ({ testbed, run }) => {
    const args = [...testbed.devices, "--limit", "70"];
    const { stdout } = await run(args);
    expect(JSON.parse(stdout)).toHaveLength(70);
    expect(stdout).toBe((await testbed.run([...args, "--json"])).stdout);
  });

  it("takes --limit, --columns and any format with --brief", async ({ testbed }) => {
    const limited = await testbed.run([...testbed.devices, "--brief", "--limit", "3", "--columns", "id", "--json"]);
    expect(Object.keys(JSON.parse(limited.stdout)[2])).toEqual(["id"]);
    expect(noticeOf(limited.stderr)).toMatchObject({ shown: 3, columns: "id", next: { offset: 3 } });
    expect(noticeOf(limited.stderr).next.command).toContain("--offset 3 --limit 3");
    const table = await testbed.run([...testbed.devices, "--brief", "-o", "table"]);
    expect(linesOf(table.stdout)).toHaveLength(51);
    expect(table.stderr).toMatch(/^shown 50 of 120; continue with: agentauth devices list .* --brief .*--offset 50\n$/);
  });

  it("is complete for a user who gives --json", async ({ testbed }) => {
    const { stdout, stderr } = await testbed.run([...testbed.devices, "--json"]);
    expect([JSON.parse(stdout).length, stderr]).toEqual([120, ""]);
  });

  it("says what it leaves out with --quiet too, and nothing where it leaves out nothing", async ({ testbed, run }) => {
    const { stdout, stderr } = await run([...testbed.devices, "-q"]);
    expect([JSON.parse(stdout).length, noticeOf(stderr).next.offset]).toEqual([50, 50]);
    const end = await run([...testbed.devices, "-q", "--offset", "100"]);
    expect([JSON.parse(end.stdout).length, end.stderr]).toEqual([20, ""]);
  });

  it("says where a filtered one continues", async ({ testbed, run }) => {
    const { stdout, stderr } = await run([...testbed.devices, "--title", "*"]);
    const { next } = noticeOf(stderr);
    expect([JSON.parse(stdout).length, next.offset]).toEqual([50, 50]);
  });
});

describe("agentauth commands", () => {
  it("describes one command, by its path", async () => {
    const { code, stdout } = await runCli(["commands", "devices", "list", "--json"]);
    const all = JSON.parse((await runCli(["commands", "--json"])).stdout) as { commands: { name: string }[] };
    const devices = all.commands.find(({ name }) => name === "devices") as unknown as { commands: { name: string }[] };
    expect([code, JSON.parse(stdout)]).toEqual([0, devices.commands.find(({ name }) => name === "devices list")]);
    expect(stdout.length).toBeLessThan(12_000);
  });

  it("is names and summaries for an agent, and complete with --json", async () => {
    const { stdout } = await runCli(["commands"], { env: AGENT });
    const items = JSON.parse(stdout) as { name: string }[];
    expect(items.map(({ name }) => name)).toContain("devices list");
    expect(Object.keys(items[0] ?? {})).toEqual(["name", "summary"]);
    expect(stdout.length).toBeLessThan(8_000);
    const complete = (await runCli(["commands", "--json"], { env: AGENT })).stdout;
    expect(complete).toBe((await runCli(["commands", "--json"])).stdout);
    expect(complete).not.toContain("receive-callback");
  });

  it.each([
    [["devices", "lst"], "did you mean list?"],
    [["nothing-like-it"], "agentauth commands lists them"],
    [[""], "agentauth commands lists them"],
  ])("refuses the path %j", async (path, hint) => {
    const { code, stdout, stderr } = await runCli(["commands", ...path, "--json"]);
    expect([code, stdout, JSON.parse(stderr).error.hint]).toEqual([2, "", hint]);
  });
});

describe("the notice of the agent mode", () => {
  const notice = "for an AI agent";
  const list = async (home: string, env: Record<string, string>) =>
    (await runCli(["config", "list"], { env: { AGENTAUTH_HOME: home, ...env } })).stderr.includes(notice);

  it("comes once per session, by the variable of the agent or its name", async () => {
    const home = temporaryFolder();
    expect([await list(home, AGENT), await list(home, AGENT)]).toEqual([true, false]);
    const codex = (id: string) => ({ CODEX_SANDBOX: "1", CODEX_THREAD_ID: id });
    expect([await list(home, codex("a")), await list(home, codex("a")), await list(home, codex("b"))]).toEqual([
      true,
      false,
      true,
    ]);
    expect(readFileSync(join(home, "agent-sessions.json"), "utf8")).not.toContain("codex");
  });

  it("comes again after an hour without such a variable, and after a day with one", () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const hour = 3_600_000;
    expect([0, hour - 1, hour, 2 * hour].map((at) => isNewSession("x", env, at))).toEqual([true, false, true, true]);
    const named = { ...env, CODEX_THREAD_ID: "t" };
    expect([0, 23 * hour, 24 * hour].map((at) => isNewSession("x", named, at))).toEqual([true, false, true]);
  });

  it.each<[string, (home: string) => void]>([
    ["does not exist", (home) => chmodSync(home, 0o700)],
    ["has a folder in its place", (home) => mkdirSync(join(home, "agent-sessions.json"))],
    ["has a damaged one", (home) => writeFileSync(join(home, "agent-sessions.json"), "{", { mode: 0o600 })],
  ])("comes and nothing fails where the folder %s", (what, arrange) => {
    const folder = temporaryFolder();
    arrange(folder);
    const home = what === "does not exist" ? join(folder, "none") : folder;
    expect(isNewSession("x", { AGENTAUTH_HOME: home }, 0)).toBe(true);
    if (what === "does not exist") expect(existsSync(home)).toBe(false);
  });
});
