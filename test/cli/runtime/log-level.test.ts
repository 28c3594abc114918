import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bench, startBench } from "../../helpers/cli.js";

let bench: Bench;

beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.sandbox.close());

describe("AGENTAUTH_LOG", () => {
  it.each(["info", "debug"])("%s logs each request to stderr, and no token", async (level) => {
    const { code, stderr } = await bench.run(bench.pools, { env: { AGENTAUTH_LOG: level } });
    expect(code).toBe(0);
    expect(stderr).toContain(`> GET ${bench.sandbox.baseUrl}/api/v1/pool`);
    expect(stderr.includes("authorization: Bearer")).toBe(level === "debug");
    expect(stderr).not.toContain(bench.sandbox.apiToken);
  });

  it("is refused where it is no level", async () => {
    const { code, stderr } = await bench.run(bench.pools, { env: { AGENTAUTH_LOG: "loud" } });
    expect(code).toBe(2);
    expect(stderr).toContain('AGENTAUTH_LOG "loud" must be one of info, debug');
    expect(bench.asked()).toBe(0);
  });
});
