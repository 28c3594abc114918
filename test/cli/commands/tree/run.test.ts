import { describe, expect } from "vitest";
import { treeLine } from "../../../../src/cli/commands/tree/run.js";
import { benchTest } from "../../../helpers/bench-test.js";
import { allIds, linesOf, runCli, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { sendJson, startServer } from "../../../helpers/server.js";

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

/** The numbers of devices of pools below domains, of which a service may not say how many they are. */
type Shape = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A service with such an account; an item whose id ends with "bare" has no other field. */
async function serviceWith(shape: Shape, isCounted = true) {
  const named = (id: string, fields: object = {}) =>
    id.endsWith("bare") ? { id } : { id, title: `Title of ${id}`, status: "active", ...fields };
  const pools: Record<string, number> = Object.assign({}, ...Object.values(shape));
  const { origin } = await startServer((response, { url }) => {
    const { pathname, searchParams } = new URL(url, "http://x");
    const of = searchParams.get("domain_id") ?? searchParams.get("pool_id") ?? "";
    const all: Record<string, () => object[]> = {
      domain: () => Object.keys(shape).map((id) => named(id)),
      pool: () => Object.keys(shape[of] ?? {}).map((id) => named(id)),
      device: () =>
        Array.from({ length: pools[of] ?? 0 }, (_, n) =>
          of.endsWith("lost") && n === 0
            ? { title: "lost" }
            : named(`${of}-${n}${n === 1 ? "-bare" : ""}`, { session_type: "mcp" }),
        ),
    };
    const items = all[pathname.split("/").at(-1) ?? ""]?.() ?? [];
    const [offset, size] = ["offset", "limit"].map((name) => Number(searchParams.get(`pagination[${name}]`) ?? 0));
    const from = offset ?? 0;
    const next = from + Math.min(size || 100, 100);
    const pagination = {
      ...(isCounted && { item_count: items.length }),
      ...{ page_offset: from, page_size: size, next_page_offset: next < items.length ? next : null },
    };
    sendJson(response, {
      ...{ status: "success", summaries: items.slice(from, next), pagination },
      sorting: { field: "id", direction: "asc" },
    });
  });
  const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
  return async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli(["tree", "--account", "acc", ...args], { env });
    return fixedText([code, stdout, stderr].join("\n"));
  };
}

const SMALL: Shape = { dom_a: { pool_a: 7, pool_one: 1, pool_bare: 2 }, dom_bare: { pool_z: 0 }, dom_empty: {} };

describe("a tree is as it was approved", () => {
  it.for<[string, string[]]>([
    ["a table", ["-o", "table"]],
    ["a table without devices", ["-o", "table", "--limit", "0"]],
    ["a table of two", ["-o", "table", "--limit", "2"]],
    ["plain", ["-o", "plain"]],
    ["whole", ["-o", "json", "--limit", "2"]],
    ["short", ["--brief"]],
    ["short as yaml", ["--brief", "-o", "yaml"]],
    ["short as a table, which is none", ["--brief", "-o", "table"]],
    ["short as plain, which is none", ["--brief", "-o", "plain"]],
  ])("%s", async ([_what, args]) => {
    expect(await (await serviceWith(SMALL))(...args)).toMatchSnapshot();
  });

  it.for<[string, string[]]>([
    ["a table", ["-o", "table", "--limit", "3"]],
    ["whole", ["-o", "json", "--limit", "0"]],
    ["short", ["--brief"]],
  ])("where the service does not say how many devices there are: %s", async ([_what, args]) => {
    expect(await (await serviceWith(SMALL, false))(...args)).toMatchSnapshot();
  });

  it("of a list with items that have no id, which does not say how many there are", async () => {
    const lost = await serviceWith({ dom: { pool_lost: 2 } }, false);
    expect(await lost("-o", "json")).toMatchSnapshot();
    expect(await (await serviceWith({ dom: { pool_lost: 2 } }))("-o", "plain")).toMatchSnapshot();
  });

  it("in the short form, of fifty items in all: domains before pools before devices", async () => {
    const many = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}_${n}`);
    const pools = (domain: string, count: number) =>
      Object.fromEntries(many(`p_${domain}`, count).map((id) => [id, 9]));
    const briefOf = async (shape: Shape) => {
      const text = await (await serviceWith(shape))("--brief");
      const [, json = "", notice = ""] = /^0\n(\{.*\})\n+(\{.*\})\n*$/s.exec(text) ?? [];
      const { domains, ...marks } = JSON.parse(json);
      const shown = domains.map((domain: { pools: { devices: object[] }[]; pools_left_out?: true }) =>
        [domain.pools_left_out ?? false, ...domain.pools.map(({ devices }) => devices.length)].join(" "),
      );
      return { marks, shown, notice: JSON.parse(notice) };
    };
    const domains = await briefOf(Object.fromEntries(many("d", 51).map((id) => [id, pools(id, 1)])));
    expect(domains.shown).toEqual(Array(50).fill("true"));
    expect(domains.marks).toEqual({ account_id: "acc", domains_left_out: true });
    expect(domains.notice).toMatchObject({
      shown: 50,
      next: { offset: 50, command: "agentauth domains list --account acc --offset 50" },
    });
    const few = await briefOf({ d: pools("d", 48), e: pools("e", 3) });
    expect([few.marks, few.shown]).toEqual([{ account_id: "acc" }, [`false${" 0".repeat(48)}`, "true"]]);
    expect(few.notice.next).toEqual({ offset: 0, command: "agentauth pools list --domain e --offset 0" });
    const devices = await briefOf({ d: pools("d", 10) });
    expect(devices.shown).toEqual(["false 5 5 5 5 5 5 5 4 0 0"]);
    expect(devices.notice).toMatchObject({
      shown: 50,
      next: { offset: 5, command: "agentauth devices list --pool p_d_0 --offset 5" },
    });
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
