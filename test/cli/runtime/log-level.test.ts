import { describe, expect } from "vitest";
import { benchTest } from "../../helpers/bench-test.js";

const it = benchTest();

describe("AGENTAUTH_LOG", () => {
  it.for(["info", "debug"])("%s logs each request to stderr, and no token", async (level, { bench }) => {
    const { code, stderr } = await bench.run(bench.pools, { env: { AGENTAUTH_LOG: level } });
    expect(code).toBe(0);
    expect(stderr).toContain(`> GET ${bench.sandbox.baseUrl}/api/v1/pool`);
    expect(stderr.includes("authorization: Bearer")).toBe(level === "debug");
    expect(stderr).not.toContain(bench.sandbox.apiToken);
  });

  it("is refused where it is no level", async ({ bench }) => {
    const { code, stderr } = await bench.run(bench.pools, { env: { AGENTAUTH_LOG: "loud" } });
    expect(code).toBe(2);
    expect(stderr).toContain('AGENTAUTH_LOG "loud" must be one of info, debug');
    expect(bench.deviceRequests()).toBe(0);
  });
});
