import { describe, expect } from "vitest";
import { runProcess } from "../helpers/cli.js";
import { flowTest } from "./support.js";

const it = flowTest();

describe("agentauth token, when the token has expired", () => {
  it("refreshes it once for twenty processes", async ({ harness, me }) => {
    await me.logIn();
    await me.age(-10);
    const results = await Promise.all(
      Array.from({ length: 20 }, () => runProcess(["token", harness.url], { env: { AGENTAUTH_HOME: me.home } })),
    );
    expect(results.map(({ code }) => code)).toEqual(Array(20).fill(0));
    expect(new Set(results.map(({ stdout }) => stdout)).size).toBe(1);
    expect(me.requests().filter((line) => line.includes("refresh_token"))).toEqual([
      "POST /<pool>/token refresh_token 200",
    ]);
  });
});
