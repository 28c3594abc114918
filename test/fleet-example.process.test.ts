import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { compileExample } from "./helpers/example.js";
import { HAS_REDIS } from "./helpers/redis-server.js";

const run = async (env: NodeJS.ProcessEnv) =>
  promisify(execFile)(process.execPath, [await compileExample("fleet/fleet.ts")], { env });

describe.skipIf(!HAS_REDIS)("the example of a fleet (needs redis-server)", () => {
  it("refreshes once for two workers, which get the same token", async () => {
    const { stdout, stderr } = await run({ PATH: process.env["PATH"] });
    expect(stderr).toBe("");
    expect(stdout.trimEnd().split("\n")).toEqual(["tokens: 2 workers, 1 distinct", "refreshes at the issuer: 1"]);
  });
});

describe("the example of a fleet", () => {
  it("says how to get a Redis where there is none", async () => {
    await expect(run({ PATH: "" })).rejects.toMatchObject({
      code: 1,
      stderr: "redis-server is not installed: apt-get install redis-server, or brew install redis\n",
    });
  });
});
