import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../src/sandbox/sandbox.js";

const folder = fileURLToPath(new URL("../examples/", import.meta.url));

async function run(name: string, args: string[] = [], env: Record<string, string> = {}): Promise<string[]> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [name, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], ...env },
  });
  expect(stderr).toBe("");
  return stdout.trimEnd().split("\n");
}

const EXAMPLES: Record<string, (name: string) => Promise<void>> = {
  async "list-devices.mjs"(name) {
    await using sandbox = await startSandbox({ devices: 120 });
    const env = { AGENTAUTH_BASE_URL: sandbox.baseUrl, AGENTAUTH_API_TOKEN: sandbox.apiToken };
    const lines = await run(name, [sandbox.ids.pool], env);
    const listed = lines.map((line) => line.split("\t")[0]);
    const there = Array.from({ length: 120 }, (_, at) => sandbox.data.device(sandbox.ids.pool, at)?.id);
    expect(listed.toSorted()).toEqual(there.toSorted());
    await expect(run(name, ["pool_unknown"], env)).rejects.toMatchObject({ code: 1, stderr: /^not_found: / });
  },

  async "resume-after-error.mjs"(name) {
    const lines = await run(name);
    expect(lines.slice(0, -1)).toEqual([
      "connection_reset after 150 devices, resuming at offset 150",
      "connection_reset after 300 devices, resuming at offset 300",
      "connection_reset after 450 devices, resuming at offset 450",
    ]);
    expect(lines.at(-1)).toBe("500 devices, 500 of them distinct");
  },

  async "with-faults.mjs"(name) {
    expect(await run(name)).toEqual([
      "status: fired 1 times, correct count",
      "status: fired 1 times, correct count",
      "truncated-json: fired 1 times, correct count",
      "extra-fields: fired 6 times, correct count",
    ]);
  },
};

describe("the examples", () => {
  it("are all run here", async () => {
    // Those of resource servers are run in resource-server/examples.process.test.ts.
    const names = (await readdir(folder)).filter((name) => !name.startsWith("resource-server-"));
    expect(names.toSorted()).toEqual(Object.keys(EXAMPLES).toSorted());
  });

  it.each(Object.entries(EXAMPLES))("%s does what it says", (name, check) => check(name));
});
