import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { allIds, BIN, cleanEnv, linesOf, temporaryFolder } from "../helpers/cli.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 120 });

/** Runs the program as an agent does, with stdout in a file, and stderr in the same one or in another. */
async function redirected(args: readonly string[], env: Record<string, string>, messages: "same" | "other") {
  const folder = temporaryFolder();
  const [path, other] = [join(folder, "out"), join(folder, "err")];
  const out = openSync(path, "w");
  const err = messages === "same" ? out : openSync(other, "w");
  const child = spawn(process.execPath, [BIN, ...args], {
    env: cleanEnv({ ...env, CLAUDECODE: "1" }),
    stdio: ["ignore", out, err],
  });
  const [code] = await once(child, "close");
  for (const fd of new Set([out, err])) closeSync(fd);
  return { code, text: readFileSync(path, "utf8") };
}

describe("a list that an agent's program redirects to a file", () => {
  it.for([[], ["--json"], ["-o", "csv"]])("is what it is for a user: %j", async (flags, { testbed }) => {
    const args = [...testbed.devices, ...flags];
    const { code, text } = await redirected(args, testbed.env, "other");
    const user = await testbed.run(args);
    expect([code, text]).toEqual([0, user.stdout]);
    for (const id of allIds(testbed.sandbox)) expect(text).toContain(id);
  });

  it("is the short form where one file records stdout and stderr", async ({ testbed }) => {
    const { code, text } = await redirected(testbed.devices, testbed.env, "same");
    const [items = ""] = /^\[.*?\]$/ms.exec(text) ?? [];
    expect([code, JSON.parse(items).length]).toEqual([0, 50]);
    expect(linesOf(text).some((line) => line.startsWith("for an AI agent"))).toBe(true);
  });
});
