import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { allIds, type Bench, linesOf, startBench } from "../helpers/cli.js";

let bench: Bench;

beforeAll(async () => {
  bench = await startBench({ devices: 12 });
});
afterEach(() => bench.sandbox.faults.clear());
afterAll(() => bench.sandbox.close());

const tree = (...args: string[]) => bench.run(["tree", "--account", bench.sandbox.ids.account, ...args]);

/** The order in which the service lists. */
function byId<T extends { id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
}

describe("tree", () => {
  it("shows domains, their pools and the first devices of each", async () => {
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

  it("draws branches, and says how many more there are", async () => {
    const { stdout } = await tree("-o", "table", "--limit", "1");
    const lines = linesOf(stdout);
    expect(lines[0]).toBe(`account ${bench.sandbox.ids.account}`);
    expect(lines.filter((line) => /^[├└]── /.test(line))).toHaveLength(2);
    expect(lines.filter((line) => /^[│ ] {3}[├└]── /.test(line))).toHaveLength(4);
    expect(lines.filter((line) => line.endsWith("└── … and 11 more (--limit)"))).toHaveLength(4);
  });

  it("as json and yaml holds every device unless there is a limit", async () => {
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

  it("can be filtered with jq", async () => {
    expect((await tree("--jq", "[.domains[].pools[].device_count] | add")).stdout).toBe("48\n");
  });
});

describe("devices get", () => {
  it("gives the whole device", async () => {
    const { data, ids } = bench.sandbox;
    const id = data.device(ids.pool, 7)?.id ?? "";
    const { code, stdout, stderr } = await bench.run(["devices", "get", id, "--pool", ids.pool, "-o", "json"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual(
      JSON.parse(JSON.stringify(await bench.service.devices.get({ pool_id: ids.pool, id }))),
    );
    const plain = await bench.run(["devices", "get", id, "--pool", ids.pool]);
    expect(plain.stdout).toMatch(new RegExp(`^id\\t${id}$`, "m"));
    expect((await bench.run(["devices", "get", id, "--pool", ids.pool, "-o", "id"])).stdout).toBe(`${id}\n`);
  });
});

describe("api", () => {
  it("gives an answer as the service gave it", async () => {
    const { ids } = bench.sandbox;
    const query = ["-f", `pool_id=${ids.pool}`, "-f", "pagination[offset]=3", "-f", "pagination[page_size]=2"];
    const { code, stdout, stderr } = await bench.run(["api", "GET", "/api/v1/device", ...query]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const body = JSON.parse(stdout);
    expect(body).toMatchObject({ status: "success", pagination: { page_offset: 3, page_size: 2, item_count: 12 } });
    expect(body.summaries.map(({ id }: { id: string }) => id)).toEqual(allIds(bench.sandbox).slice(3, 5));
  });

  it("needs no leading slash, takes jq, and encodes values", async () => {
    const { ids } = bench.sandbox;
    const jq = await bench.run([
      "api",
      "get",
      "api/v1/pool",
      "-f",
      `domain_id=${ids.domain}`,
      "--jq",
      ".pagination.item_count",
    ]);
    expect(jq.stdout).toBe("2\n");
    await bench.run(["api", "GET", "/api/v1/pool", "-f", "domain_id=a&b=c#d e"]);
    expect(bench.sandbox.requests.at(-1)?.query).toEqual({ domain_id: "a&b=c#d e" });
  });
});
