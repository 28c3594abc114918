import { describe, expect } from "vitest";
import { treeLine } from "../../../../src/cli/commands/tree/run.js";
import { benchTest } from "../../../helpers/bench-test.js";
import { allIds, linesOf, runCli, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";

const it = benchTest({ devices: 12 }).extend("tree", ({ bench }) => {
  return (...args: string[]) => bench.run(["tree", "--account", bench.sandbox.ids.account, ...args]);
});

/** The order in which the service lists. */
function byId<T extends { id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
}

describe("tree", () => {
  it("shows domains, their pools and the first devices of each", async ({ bench, tree }) => {
    const { data, ids } = bench.sandbox;
    const { code, stdout, stderr } = await tree();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const expected = [["account", ids.account]];
    for (const domain of byId(data.domains(ids.account))) {
      expected.push(["domain", domain.id]);
      for (const pool of byId(data.pools(domain.id))) {
        expected.push(["pool", pool.id]);
        for (let index = 0; index < 5; index++) expected.push(["device", data.device(pool.id, index)?.id ?? ""]);
      }
    }
    expect(linesOf(stdout).map((line) => line.split("\t").slice(0, 2))).toEqual(expected);
    expect(stdout).toMatch(/^pool\tpool_\w+\t.*\t\w+, 12 devices$/m);
  });

  it("draws branches, and says how many more there are", async ({ bench, tree }) => {
    const { stdout } = await tree("-o", "table", "--limit", "1");
    const lines = linesOf(stdout);
    expect(lines[0]).toBe(`account ${bench.sandbox.ids.account}`);
    expect(lines.filter((line) => /^[├└]── /.test(line))).toHaveLength(2);
    expect(lines.filter((line) => /^[│ ] {3}[├└]── /.test(line))).toHaveLength(4);
    const pool = (branch: string, below: string) => [
      `${branch}pool`,
      `${below}├── dev`,
      `${below}└── … and 11 more (--limit)`,
    ];
    expect(lines.map((line) => line.replace(/^([│├└─ ]*).*\b(acc|dom|pool|dev)_.*$/u, "$1$2"))).toEqual([
      ...["acc", "├── dom", ...pool("│   ├── ", "│   │   "), ...pool("│   └── ", "│       ")],
      ...["└── dom", ...pool("    ├── ", "    │   "), ...pool("    └── ", "        ")],
    ]);
  });

  it("as json and yaml holds every device unless there is a limit", async ({ bench, tree }) => {
    const { ids } = bench.sandbox;
    const whole = JSON.parse((await tree("-o", "json")).stdout);
    expect(whole).toMatchObject({ account_id: ids.account, domains: [{ type: "domain" }, { type: "domain" }] });
    const pools = whole.domains.flatMap(
      (domain: { pools: { id: string; device_count: number; devices: { id: string }[] }[] }) => domain.pools,
    );
    const pool = pools.find(({ id }: { id: string }) => id === ids.pool);
    expect(pool.devices.map(({ id }: { id: string }) => id)).toEqual(allIds(bench.sandbox));
    const none = JSON.parse((await tree("-o", "json", "--limit", "0")).stdout);
    expect(none.domains[0].pools[0]).toMatchObject({ device_count: 12, devices: [] });
    expect((await tree("-o", "yaml", "--limit", "0")).stdout).toMatch(/^account_id: acc_/);
  });

  it("can be filtered with jq", async ({ tree }) => {
    expect((await tree("--jq", "[.domains[].pools[].device_count] | add")).stdout).toBe("48\n");
  });
});

describe("a tree that ends in the middle", () => {
  it("is exit 7 once something was printed", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "status", status: 503, path: "device", times: 0 });
    const { code, stdout, stderr } = await bench.run([
      "tree",
      "--account",
      bench.sandbox.ids.account,
      "--retries",
      "0",
    ]);
    expect([code, stdout.startsWith("account\t")]).toEqual([7, true]);
    expect(stderr).toMatch(/^error: the tree ended early: .*HTTP 503/);
  });

  it("prints nothing as json, or where nothing came at all", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "status", status: 503, path: "device", times: 0 });
    const json = await bench.run(["tree", "--account", bench.sandbox.ids.account, "--retries", "0", "-o", "json"]);
    expect([json.code, json.stdout]).toEqual([5, ""]);
    bench.sandbox.faults.add({ kind: "status", status: 503, path: "domain", times: 0 });
    const text = await bench.run(["tree", "--account", bench.sandbox.ids.account, "--retries", "0"]);
    expect([text.code, text.stdout]).toEqual([5, ""]);
  });
});

describe("a tree in which items have no id", () => {
  it.for(["json", "plain"])("has all others as %s, then ends with exit 7", async (format, { bench, tree }) => {
    const { data, ids } = bench.sandbox;
    // The pools of the first domain.
    bench.sandbox.faults.add({ kind: "missing-fields", fields: ["id"], path: "pool", times: 1 });
    const { code, stdout, stderr } = await tree("-o", format);
    const [first, second] = byId(data.domains(ids.account));
    const pools = byId(data.pools(second?.id ?? ""));
    const expected = [first?.id, second?.id, ...pools.map(({ id }) => id), data.device(pools[1]?.id ?? "", 0)?.id];
    for (const id of expected) expect(stdout).toContain(id);
    const lost = data.pools(first?.id ?? "").map(({ title }) => title);
    expect([code, lost.length]).toEqual([7, 2]);
    const message = format === "json" ? JSON.parse(stderr).error.message : stderr;
    expect(message).toContain(`2 of the pools of domain_id "${first?.id}" have no id, at offsets 0, 1`);
    expect(stderr).toContain(`agentauth api GET /api/v1/pool -f domain_id=${first?.id} --paginate`);
  });

  it("says how many lists have such items", async ({ bench, tree }) => {
    bench.sandbox.faults.add({ kind: "missing-fields", fields: ["id"], path: "device", times: 0 });
    const { code, stdout, stderr } = await tree("-o", "json", "--limit", "3");
    expect([code, JSON.parse(stdout).domains[0].pools[0]]).toEqual([
      7,
      expect.objectContaining({ device_count: 12, devices: [] }),
    ]);
    expect(JSON.parse(stderr).error.message).toContain("3 more lists of the tree have such items");
  });
});

describe("a tree that cannot be printed", () => {
  it.for<[string, string[], string, string]>([
    ["without an account", ["tree"], "no account", "hint: agentauth tree --account <account_id>"],
    [
      "in a format for rows",
      ["tree", "--account", "a", "-o", "csv"],
      'tree does not support the format "csv"',
      "hint: formats of a tree: table, plain, json, ndjson, yaml",
    ],
    ["with an unknown flag", ["tree", "--account", "a", "--lmit", "1"], "unknown option '--lmit'", "did you mean"],
  ])("%s is a usage error, and nothing is sent", async ([_what, args, message, hint], { bench }) => {
    const before = bench.sandbox.requests.length;
    const { code, stdout, stderr } = await bench.run(args);
    expect([code, stdout, bench.sandbox.requests.length]).toEqual([2, "", before]);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it("in the format of the profile, where that is one for rows", async ({ bench }) => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await runCli(["config", "set", "output", "csv"], { env });
    const { code, stderr } = await bench.run(["tree", "--account", bench.sandbox.ids.account], { env });
    expect([code, stderr]).toEqual([
      2,
      'error: tree does not support the format "csv"\nhint: formats of a tree: table, plain, json, ndjson, yaml\n',
    ]);
  });

  it("of an account that does not exist", async ({ bench }) => {
    const { code, stdout } = await bench.run(["tree", "--account", "acc_nope"]);
    expect([code, stdout]).toEqual([6, ""]);
  });

  it("to its end, because a signal ends it", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "slow-headers", ms: 60_000, path: "device", times: 0 });
    const { code, stdout, stderr } = await bench.run(["tree", "--account", bench.sandbox.ids.account], {
      signalAfter: { characters: 1, signal: "SIGINT" },
    });
    expect([code, stdout.startsWith("account\t"), stderr]).toEqual([130, true, "error: ended by SIGINT\n"]);
  });
});

const LINE = {
  depth: 3,
  last: false,
  kind: "device",
  id: "dev_0123456789abcd",
  title: "MacBook Pro of the second floor",
  note: "browser, active",
};

it("continues a line of the tree between two words, beside its branches", () => {
  const { stdout } = createMemoryIo({ tty: true, columns: 40, env: { NO_COLOR: "1" } });
  expect(treeLine(LINE, [true, false], stdout)).toBe(
    [
      "│       ├── MacBook Pro of the second",
      "│       │     floor  dev_0123456789abcd",
      "│       │     (browser, active)",
      "",
    ].join("\n"),
  );
});

it("keeps the line whole in a pipe", () => {
  const { stdout } = createMemoryIo({ columns: 40 });
  expect(treeLine(LINE, [true, false], stdout).split("\n")).toHaveLength(2);
});
