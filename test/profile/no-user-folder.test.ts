import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, vi } from "vitest";
import { enableCompileCache } from "../../src/cli/main.js";
import { createAgentClient } from "../../src/node.js";
import { findHome, homeFolder, userFolder } from "../../src/profile/settings.js";
import { memoryStore } from "../../src/store/memory.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { testbedTest } from "../helpers/testbed-test.js";
import { onSystem } from "../platform/support.js";

const it = testbedTest({ devices: 3 });
const MCP = "http://127.0.0.1:1/mcp";
const NO_HOME = { HOME: undefined, AGENTAUTH_HOME: undefined };

beforeEach(() => onSystem({ userFolder: () => undefined }));

describe.skipIf(ON_WINDOWS)("a user whom the system does not know, without HOME", () => {
  it("has no folder, and is asked for one where a file is needed", async () => {
    expect([userFolder({}), findHome({})]).toEqual([undefined, undefined]);
    expect(() => homeFolder({})).toThrow(expect.objectContaining({ code: "usage", class: "usage" }));
    for (const HOME of [undefined, ""]) {
      for (const args of [["status"], ["token", MCP, "--no-login"], ["config", "set", "pool", "p"]]) {
        const { code, stderr } = await runCli(args, { env: { ...NO_HOME, HOME } });
        expect([code, stderr]).toEqual([2, expect.stringContaining("hint: set AGENTAUTH_HOME")]);
      }
    }
    const added = await runCli(["mcp", "add", "cursor", MCP, "--dry-run"], { env: NO_HOME });
    expect([added.code, added.stderr]).toEqual([2, expect.stringContaining("hint: set HOME")]);
    const checked = await runCli(["doctor", "--json"], { env: NO_HOME });
    expect(checked.code).toBe(2);
    const states = JSON.parse(checked.stdout).checks.map(({ name, state }: Record<string, string>) => [name, state]);
    expect(Object.fromEntries(states)).toMatchObject({ home: "failed", store: "failed", writing: "skipped" });
  });

  it("needs none for lists, for other stores, and with AGENTAUTH_HOME", async ({ testbed }) => {
    const listed = await runCli([...testbed.devices, "-o", "id"], { env: { ...testbed.env, ...NO_HOME } });
    expect([listed.code, listed.stdout.split("\n").length]).toEqual([0, 4]);
    const memory = await runCli(["token", MCP, "--no-login"], { env: { ...NO_HOME, AGENTAUTH_STORE: "memory" } });
    expect(memory.code).toBe(4);
    const home = join(temporaryFolder(), "home");
    const set = await runCli(["config", "set", "pool", "p"], { env: { ...NO_HOME, AGENTAUTH_HOME: home } });
    expect([set.code, existsSync(join(home, "config.json"))]).toEqual([0, true]);
  });

  it("has no folder for compiled code, and clients with a store of their own", () => {
    const folders: string[] = [];
    for (const env of [{}, { AGENTAUTH_HOME: "/a" }, { AGENTAUTH_HOME: "relative" }])
      enableCompileCache(env, { enableCompileCache: (folder: string) => folders.push(folder) });
    expect(folders).toEqual([]);
    vi.stubEnv("HOME", undefined);
    vi.stubEnv("AGENTAUTH_HOME", undefined);
    expect(() => createAgentClient({ store: memoryStore() })).not.toThrow();
    expect(() => createAgentClient()).toThrow(expect.objectContaining({ code: "usage" }));
    vi.unstubAllEnvs();
  });
});
