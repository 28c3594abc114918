import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { ManagementClient } from "../../../src/api/client.js";
import type { ListOptions } from "../../../src/api/page.js";
import { readBriefTree, Walk } from "../../../src/cli/commands/tree/walk.js";
import { isNewSession } from "../../../src/cli/runtime/agent-mode.js";
import type { CommandContext } from "../../../src/cli/runtime/context.js";
import { benchTest } from "../../helpers/bench-test.js";
import { linesOf, type RunOptions, runCli, temporaryFolder } from "../../helpers/cli.js";

const AGENT = { AGENTAUTH_AGENT: "1" };
const SHORT = ["id", "title", "status", "session_type", "last_seen"];

const it = benchTest({ devices: 120 }).extend("run", ({ bench }) => {
  return (args: readonly string[], more: RunOptions = {}) =>
    bench.run(args, { ...more, env: { ...AGENT, ...more.env } });
});
const noticeOf = (stderr: string) => JSON.parse(linesOf(stderr).at(-1) ?? "");

describe("a list for an AI agent", () => {
  it.for<[string[], Record<string, string>]>([
    [[], AGENT],
    [["--brief", "--json"], {}],
    [["--brief", "-o", "json"], AGENT],
  ])(
    "that names no form, and with --brief, is 50 items in few columns, and the command for the next ones: %j",
    async ([flags, env], { bench }) => {
      const run = (args: readonly string[]) => bench.run(args, { env });
      const { code, stdout, stderr } = await run([...bench.devices, ...flags]);
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
    async (flags, { bench, run }) => {
      const args = [...bench.devices, ...flags];
      const { code, stdout, stderr } = await run(args);
      expect({ code, stdout, stderr }).toEqual({ ...(await bench.run(args)), signal: undefined });
      expect(flags[1] === "json" || flags[0] === "--json" ? JSON.parse(stdout) : linesOf(stdout)).toHaveLength(120);
    },
  );

  it("has as many items as --limit says, whole and as JSON", async ({ bench, run }) => {
    const args = [...bench.devices, "--limit", "70"];
    const { stdout } = await run(args);
    expect(JSON.parse(stdout)).toHaveLength(70);
    expect(stdout).toBe((await bench.run([...args, "--json"])).stdout);
  });

  it("takes --limit, --columns and any format with --brief", async ({ bench }) => {
    const limited = await bench.run([...bench.devices, "--brief", "--limit", "3", "--columns", "id", "--json"]);
    expect(Object.keys(JSON.parse(limited.stdout)[2])).toEqual(["id"]);
    expect(noticeOf(limited.stderr)).toMatchObject({ shown: 3, columns: "id", next: { offset: 3 } });
    expect(noticeOf(limited.stderr).next.command).toContain("--offset 3 --limit 3");
    const table = await bench.run([...bench.devices, "--brief", "-o", "table"]);
    expect(linesOf(table.stdout)).toHaveLength(51);
    expect(table.stderr).toMatch(/^shown 50 of 120; continue with: agentauth devices list .* --brief .*--offset 50\n$/);
  });

  it("is complete for a user who gives --json", async ({ bench }) => {
    const { stdout, stderr } = await bench.run([...bench.devices, "--json"]);
    expect([JSON.parse(stdout).length, stderr]).toEqual([120, ""]);
  });

  it("says what it leaves out with --quiet too, and nothing where it leaves out nothing", async ({ bench, run }) => {
    const { stdout, stderr } = await run([...bench.devices, "-q"]);
    expect([JSON.parse(stdout).length, noticeOf(stderr).next.offset]).toEqual([50, 50]);
    const end = await run([...bench.devices, "-q", "--offset", "100"]);
    expect([JSON.parse(end.stdout).length, end.stderr]).toEqual([20, ""]);
  });

  it("says where a filtered one continues", async ({ bench, run }) => {
    const { stdout, stderr } = await run([...bench.devices, "--title", "*"]);
    const { next } = noticeOf(stderr);
    expect([JSON.parse(stdout).length, next.offset]).toEqual([50, 50]);
  });
});

const many = (name: string, count: number) => Array.from({ length: count }, (_, at) => ({ id: `${name}${at}` }));
const DEFAULTS = {
  profile: { value: "default", source: "default" },
  ...{ baseUrl: undefined, clientCert: undefined, clientKey: undefined },
};

describe("a tree for an AI agent", () => {
  it("has 50 items at most, and every upper level before devices", async ({ bench, run }) => {
    const { account } = bench.sandbox.ids;
    const { code, stdout, stderr } = await run(["tree", "--account", account]);
    const { domains } = JSON.parse(stdout) as { domains: { pools: { devices: object[]; device_count: number }[] }[] };
    const pools = domains.flatMap((domain) => domain.pools);
    const devices = pools.flatMap((pool) => pool.devices);
    expect([code, domains.length, pools.length, devices.length]).toEqual([0, 2, 4, 20]);
    expect([Object.keys(devices[0] ?? {}), pools[0]?.device_count]).toEqual([["id", "title", "status"], 120]);
    const { next, shown } = noticeOf(stderr);
    expect([shown, next.offset]).toEqual([26, 5]);
    const more = await run(next.command.split(" ").slice(1));
    expect([more.code, JSON.parse(more.stdout).length]).toEqual([0, 50]);
    const whole = await run(["tree", "--account", account, "--limit", "0"]);
    expect(whole.stdout).toBe((await bench.run(["tree", "--account", account, "--limit", "0", "--json"])).stdout);
  });

  it("is whole for an agent that names a format, and short for a user who gives --brief", async ({ bench, run }) => {
    const args = ["tree", "--account", bench.sandbox.ids.account];
    const whole = await run([...args, "--json"]);
    expect(whole.stdout).toBe((await bench.run([...args, "--json"])).stdout);
    const short = await bench.run([...args, "--brief"]);
    expect(short.stdout).toBe((await run(args)).stdout);
    expect((await bench.run([...args, "--brief", "--jq", ".domains | length"])).stdout).toBe("2\n");
    const table = await bench.run([...args, "--brief", "-o", "table"]);
    expect([table.code, table.stderr]).toEqual([2, expect.stringContaining("does not support the format")]);
  });

  it("says what it leaves out with --quiet too, and repeats the flags of the service", async ({ bench, run }) => {
    const { account } = bench.sandbox.ids;
    const home = temporaryFolder();
    const env = { AGENTAUTH_HOME: home };
    await runCli(["config", "set", "base_url", "http://127.0.0.1:1", "--profile", "work"], {
      env: { AGENTAUTH_HOME: home },
    });
    const { baseUrl } = bench.sandbox;
    const flags = ["--profile", "work", "--base-url", baseUrl];
    const { stdout, stderr } = await run(["tree", "--account", account, "-q", ...flags], { env });
    expect(JSON.parse(stdout).domains[0].pools[0].devices_left_out).toBe(true);
    const { next } = noticeOf(stderr);
    expect(next.command).toContain(` --profile work --base-url ${baseUrl} --offset 5`);
    expect((await run(next.command.split(" ").slice(1), { env })).code).toBe(0);
  });

  it("says null for a number of devices that the service does not name", async () => {
    const devicesOf =
      (count: number) =>
      (_scope: object, { limit = count, onEnd }: ListOptions) => ({
        async *pages() {
          const yielded = Math.min(count, limit);
          const next = yielded < count ? yielded : undefined;
          yield { items: many("device", yielded), pagination: {} };
          onEnd?.({ yielded, expected: undefined, duplicates: 0, drift: [], complete: next === undefined, next });
        },
      });
    const read = async (count: number) => {
      const pages = async function* () {
        yield { items: [{ id: "one" }] };
      };
      const one = { list: () => ({ pages }) };
      const service = { domains: one, pools: one, devices: { list: devicesOf(count) } } as unknown as ManagementClient;
      const walk = new Walk(service, { signal: new AbortController().signal } as CommandContext, 1);
      const [whole] = (await walk.whole("acc", 0)) as { pools: object[] }[];
      const { domains } = (await readBriefTree(walk, "acc", DEFAULTS)).tree as { domains: { pools: object[] }[] };
      return [whole?.pools[0], domains[0]?.pools[0]];
    };
    expect(await read(6)).toMatchObject([{ device_count: null }, { device_count: null, devices_left_out: true }]);
    expect(await read(0)).toMatchObject([{ device_count: 0 }, { device_count: 0, devices: [] }]);
  });

  it("marks each list that it cuts, and no complete one", async () => {
    const walk = {
      domains: async () => [{ id: "a" }, { id: "b" }],
      pools: async (id: string) => many(id, id === "a" ? 48 : 2),
      devices: async () => ({ items: [], total: 0 }),
    } as unknown as Walk;
    const { tree, notice } = await readBriefTree(walk, "acc", DEFAULTS);
    const [a, b] = tree.domains as { pools: object[]; pools_left_out?: true }[];
    expect([a?.pools.length, a?.pools_left_out, b?.pools, b?.pools_left_out]).toEqual([48, undefined, [], true]);
    expect([a?.pools[0], tree.domains_left_out]).toEqual([
      expect.not.objectContaining({ devices_left_out: true }),
      undefined,
    ]);
    expect(notice.next?.command).toBe("agentauth pools list --domain b --offset 0");
    const wide = { ...walk, domains: async () => many("d", 51), pools: async () => [] } as unknown as Walk;
    expect((await readBriefTree(wide, "acc", DEFAULTS)).tree).toMatchObject({ domains_left_out: true });
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
