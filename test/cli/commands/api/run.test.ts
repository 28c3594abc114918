import type { ServerResponse } from "node:http";
import { describe, expect } from "vitest";
import { benchTest } from "../../../helpers/bench-test.js";
import { allIds, runCli } from "../../../helpers/cli.js";
import { sendJson, startServer } from "../../../helpers/server.js";

const it = benchTest({ devices: 12 });

describe("api", () => {
  it("gives an answer as the service gave it", async ({ bench }) => {
    const { ids } = bench.sandbox;
    const query = ["-f", `pool_id=${ids.pool}`, "-f", "pagination[offset]=3", "-f", "pagination[page_size]=2"];
    const { code, stdout, stderr } = await bench.run(["api", "GET", "/api/v1/device", ...query]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const body = JSON.parse(stdout);
    expect(body).toMatchObject({ status: "success", pagination: { page_offset: 3, page_size: 2, item_count: 12 } });
    expect(body.summaries.map(({ id }: { id: string }) => id)).toEqual(allIds(bench.sandbox).slice(3, 5));
  });

  it("needs no leading slash, takes jq, and encodes values", async ({ bench }) => {
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

  it.for<[string, string[], string, string]>([
    ["another method", ["POST", "/api/v1/device"], 'the method "POST" is not supported', "GET operations only"],
    [
      "a whole address",
      ["GET", "https://other.example/api/v1/device"],
      'the path "https://other.example/api/v1/device" is an absolute URL',
      "give only its path",
    ],
    [
      "a parameter without a name",
      ["GET", "/api/v1/device", "-f", "=x"],
      '-f "=x" is not name=value',
      "for example -f",
    ],
    ["a parameter without a value", ["GET", "/api/v1/device", "-f", "x"], '-f "x" is not name=value', "for example -f"],
    ["a path with a query", ["GET", "/api/v1/device?pool_id=p"], "", "pass parameters with -f name=value"],
    ["a path that leaves the interface", ["GET", "//other.example/x"], "", "give only the path"],
  ])("refuses %s, and sends nothing", async ([_what, args, message, hint], { bench }) => {
    const before = bench.sandbox.requests.length;
    const { code, stdout, stderr } = await bench.run(["api", ...args]);
    expect([code, stdout, bench.sandbox.requests.length]).toEqual([2, "", before]);
    expect(stderr).toMatch(/^error: /);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["a number", (response) => sendJson(response, 7)],
    ["no JSON", (response) => void response.writeHead(200, { "content-type": "application/json" }).end("nothing")],
  ])("refuses %s as a response", async (_what, answer) => {
    const { origin } = await startServer(answer);
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const { code, stdout, stderr } = await runCli(["api", "GET", "/api/v1/device"], { env });
    expect([code, stdout]).toEqual([3, ""]);
    expect(stderr).toMatch(/^error: .*JSON/);
  });

  it("masks secrets unless a flag asks for them, and prints yaml", async ({ bench }) => {
    const args = ["api", "GET", "/api/v1/device", "-f", `pool_id=${bench.sandbox.ids.pool}`, "-o", "yaml"];
    const masked = await bench.run(args);
    expect(masked.stdout).toMatch(/^status: success$/m);
    expect(masked.stdout).not.toContain("<CLIENT_SECRET>");
    expect((await bench.run([...args, "--show-secrets"])).stdout).toContain("<CLIENT_SECRET>");
  });

  it("ends with exit 5 where the service is unavailable", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "status", status: 503, times: 0 });
    const { code, stdout } = await bench.run(["api", "GET", "/api/v1/device", "--retries", "0"]);
    expect([code, stdout]).toEqual([5, ""]);
  });
});
