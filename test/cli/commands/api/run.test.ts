import type { ServerResponse } from "node:http";
import { describe, expect, vi } from "vitest";
import { ManagementClient } from "../../../../src/api/client.js";
import type { Fault } from "../../../../src/sandbox/index.js";
import { allIds, linesOf, runCli } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { sendJson, startServer } from "../../../helpers/server.js";
import { testbedTest } from "../../../helpers/testbed-test.js";

const it = testbedTest({ devices: 12 });

describe("api", () => {
  it("takes no TypeError of a package for a mistake of the user", async ({ testbed }) => {
    vi.spyOn(ManagementClient.prototype, "get").mockRejectedValueOnce(new TypeError("fetch failed"));
    const { code, stderr } = await testbed.run(["api", "GET", "/api/v1/pool"]);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("TypeError: fetch failed") });
  });

  it("gives an answer as the service gave it", async ({ testbed }) => {
    const { ids } = testbed.sandbox;
    const query = ["-f", `pool_id=${ids.pool}`, "-f", "pagination[offset]=3", "-f", "pagination[page_size]=2"];
    const { code, stdout, stderr } = await testbed.run(["api", "GET", "/api/v1/device", ...query]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const body = JSON.parse(stdout);
    expect(body).toMatchObject({ status: "success", pagination: { page_offset: 3, page_size: 2, item_count: 12 } });
    expect(body.summaries.map(({ id }: { id: string }) => id)).toEqual(allIds(testbed.sandbox).slice(3, 5));
  });

  it("needs no leading slash, takes jq, and encodes values", async ({ testbed }) => {
    const { ids } = testbed.sandbox;
    const jq = await testbed.run([
      "api",
      "get",
      "api/v1/pool",
      "-f",
      `domain_id=${ids.domain}`,
      "--jq",
      ".pagination.item_count",
    ]);
    expect(jq.stdout).toBe("2\n");
    await testbed.run(["api", "GET", "/api/v1/pool", "-f", "domain_id=a&b=c#d e"]);
    expect(testbed.sandbox.requests.at(-1)?.query).toEqual({ domain_id: "a&b=c#d e" });
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
    ["a path with a fragment", ["GET", "/api/v1/device#p"], "", "pass parameters with -f name=value"],
    ["a path that leaves the interface", ["GET", "//other.example/x"], "", "give only the path"],
  ])("refuses %s, and sends nothing", async ([_what, args, message, hint], { testbed }) => {
    const before = testbed.sandbox.requests.length;
    const { code, stdout, stderr } = await testbed.run(["api", ...args]);
    expect([code, stdout, testbed.sandbox.requests.length]).toEqual([2, "", before]);
    expect(stderr).toMatch(/^error: /);
    expect(fixedText(stderr)).toMatchSnapshot();
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

  it("prints numbers and unknown fields as the service wrote them", async () => {
    const numbers = ["12345678901234567890", "1.0", "1e3", "-0", "0.1000", "1e400", "42"];
    const text = `{"status":"success","x_unknown":{"n":[${numbers}]},"amount":1.50,"client_secret":"s"}`;
    const { origin } = await startServer((response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(text);
    });
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const printed = async (...more: string[]) => (await runCli(["api", "GET", "/x", ...more], { env })).stdout;
    expect(await printed("-o", "json", "--show-secrets")).toBe(`${text}\n`);
    expect(await printed("-o", "json")).toBe(`${text.replace('"s"', '"********"')}\n`);
    expect(await printed("-o", "plain")).toContain(`x_unknown.n\t[${numbers}]\namount\t1.50\n`);
    expect(await printed("-o", "csv")).toContain(",1.50,");
  });

  it("masks secrets unless a flag asks for them, and prints the format that one names", async ({ testbed }) => {
    const args = ["api", "GET", "/api/v1/device", "-f", `pool_id=${testbed.sandbox.ids.pool}`, "-o", "plain"];
    const masked = await testbed.run(args);
    expect(masked.stdout).toMatch(/^status\tsuccess$/m);
    expect(masked.stdout).not.toContain("<CLIENT_SECRET>");
    expect((await testbed.run([...args, "--show-secrets"])).stdout).toContain("<CLIENT_SECRET>");
  });

  it("--paginate prints all pages as one document, and runs --jq on each", async ({ testbed }) => {
    const args = ["api", "GET", "/api/v1/device", "-f", `pool_id=${testbed.sandbox.ids.pool}`];
    const paged = [...args, "-f", "pagination[page_size]=5", "--paginate"];
    const { code, stdout, stderr } = await testbed.run(paged);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const pages = JSON.parse(stdout) as { summaries: { id: string }[] }[];
    expect(pages.map(({ summaries }) => summaries.length)).toEqual([5, 5, 2]);
    const single = await testbed.run([...args, "-f", "pagination[offset]=5", "-f", "pagination[page_size]=5"]);
    expect(pages[1]).toEqual(JSON.parse(single.stdout));
    expect(linesOf((await testbed.run([...paged, "-o", "ndjson"])).stdout).map((line) => JSON.parse(line))).toEqual(
      pages,
    );
    const csv = linesOf((await testbed.run([...paged, "-o", "csv"])).stdout);
    expect(csv.map((line) => line.split(",")[0])).toEqual(["status", "success", "success", "success"]);
    expect(stdout).not.toContain("<CLIENT_SECRET>");
    const ids = await testbed.run([...paged, "--jq", ".summaries[].id"]);
    expect(linesOf(ids.stdout)).toEqual(allIds(testbed.sandbox));
    const later = await testbed.run([...paged, "-f", "pagination[offset]=10", "--jq", ".pagination.page_offset"]);
    expect(later.stdout).toBe("10\n");
  });

  it("--paginate ends with exit 7 and the command that prints the other pages", async ({ testbed }) => {
    const args = ["api", "GET", "/api/v1/device", "-f", `pool_id=${testbed.sandbox.ids.pool}`, "--retries", "0"];
    const paged = [...args, "-f", "pagination[page_size]=5", "--paginate", "--jq", ".summaries[].id"];
    testbed.sandbox.faults.add({ kind: "status", status: 503, path: "device", after: 1, times: 1 });
    const { code, stdout, stderr } = await testbed.run([...paged, "--field=pagination[offset]=2"]);
    expect([code, linesOf(stdout)]).toEqual([7, allIds(testbed.sandbox).slice(2, 7)]);
    const command = /^hint: continue with: agentauth (.*)$/m.exec(stderr)?.[1]?.replaceAll("'", "").split(" ") ?? [];
    expect(command.filter((word) => word.includes("offset"))).toEqual(["pagination[offset]=7"]);
    expect(linesOf((await testbed.run(command)).stdout)).toEqual(allIds(testbed.sandbox).slice(7));
  });

  it("takes a query as gh does, also with --paginate and in the command that continues", async ({ testbed }) => {
    const path = `/api/v1/device?pool_id=${testbed.sandbox.ids.pool}&pagination[page_size]=5&pagination%5Boffset%5D=2`;
    const one = await testbed.run([
      "api",
      "GET",
      path,
      "-f",
      "sorting[field]=title",
      "--jq",
      ".pagination.page_offset",
    ]);
    expect([one.stdout, testbed.sandbox.requests.at(-1)?.query]).toMatchObject(["2\n", { "sorting[field]": "title" }]);
    testbed.sandbox.faults.add({ kind: "status", status: 503, path: "device", after: 1, times: 1 });
    const paged = ["api", "GET", path, "--retries", "0", "--paginate", "--jq", ".summaries[].id"];
    const { code, stdout, stderr } = await testbed.run(paged);
    expect([code, linesOf(stdout)]).toEqual([7, allIds(testbed.sandbox).slice(2, 7)]);
    const command = /^hint: continue with: agentauth (.*)$/m.exec(stderr)?.[1]?.replaceAll("'", "").split(" ") ?? [];
    expect(linesOf((await testbed.run(command)).stdout)).toEqual(allIds(testbed.sandbox).slice(7));
  });

  it.for<[string, Fault, number, string]>([
    ["does not advance", { kind: "stuck-offset" }, 3, "pagination_loop"],
    ["has no pagination", { kind: "omit-pagination" }, 3, "bad_pagination"],
    ["has an offset that is none", { kind: "bad-offset", value: "5" }, 3, "bad_pagination"],
  ])("--paginate prints a page that %s, and ends", async ([_what, fault, exitCode, error], { testbed }) => {
    testbed.sandbox.faults.add({ ...fault, times: 0 });
    const args = ["api", "GET", "/api/v1/device", "-f", `pool_id=${testbed.sandbox.ids.pool}`, "--paginate", "--json"];
    const { code, stdout, stderr } = await testbed.run(args);
    expect([code, linesOf(stdout).length, JSON.parse(stderr).error.code]).toEqual([exitCode, 1, error]);
  });

  it("--paginate refuses an offset that is none, and sends nothing", async ({ testbed }) => {
    const before = testbed.sandbox.requests.length;
    const { code, stderr } = await testbed.run(["api", "GET", "/x", "-f", "pagination[offset]=a", "--paginate"]);
    expect([code, testbed.sandbox.requests.length]).toEqual([2, before]);
    expect(stderr).toContain("is not one offset");
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it("ends with exit 5 where the service is unavailable", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "status", status: 503, times: 0 });
    const { code, stdout } = await testbed.run(["api", "GET", "/api/v1/device", "--retries", "0"]);
    expect([code, stdout]).toEqual([5, ""]);
  });
});
