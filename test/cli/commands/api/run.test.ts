import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { allIds, type Bench, startBench } from "../../../helpers/cli.js";

let bench: Bench;

beforeAll(async () => {
  bench = await startBench({ devices: 12 });
});
afterEach(() => bench.sandbox.faults.clear());
afterAll(() => bench.sandbox.close());

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
