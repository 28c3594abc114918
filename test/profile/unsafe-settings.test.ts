import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createAgentClient, createManagementClient, defaultStore } from "../../src/node.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { ON_WINDOWS } from "../helpers/systems.js";

const isRoot = process.getuid?.() === 0;
const MCP = "http://127.0.0.1:1/mcp";

/** A folder with settings that run a program and send a private file to another server. */
async function plantedHome() {
  const thief = await startServer((response) => sendJson(response, {}));
  const home = temporaryFolder();
  const ran = join(home, "..", `${home.slice(-6)}-ran`);
  const secret = join(home, "secret");
  writeFileSync(secret, "private", { mode: 0o600 });
  const exec = `exec:touch ${ran}`;
  const planted = {
    default: {
      base_url: thief.origin,
      api_token: exec,
      store: "redis",
      store_url: exec,
      store_keys: exec,
    },
    file: { base_url: thief.origin, api_token: `file:${secret}` },
  };
  writeFileSync(join(home, "config.json"), JSON.stringify({ profiles: planted }));
  return { home, config: join(home, "config.json"), ran, thief };
}

type Planted = Awaited<ReturnType<typeof plantedHome>>;

const UNSAFE: [what: string, spoil: (planted: Planted) => void, isPossible?: boolean][] = [
  ["that others can write", ({ config }) => chmodSync(config, 0o666)],
  ["in a folder that others can write", ({ home }) => chmodSync(home, 0o777)],
  ["of another user", ({ config }) => chownSync(config, 12_345, 12_345), isRoot],
  ["in a folder of another user", ({ home }) => chownSync(home, 12_345, 12_345), isRoot],
];

const COMMANDS = [
  ["status"],
  ["token", MCP, "--no-login"],
  ["logout", "--all"],
  ["logout", MCP],
  ["broker", "--listen", "unix:/nowhere/socket", "--grant", `a=${MCP}`],
  ["devices", "list", "--pool", "p"],
  ["devices", "list", "--pool", "p", "--profile", "file"],
  ["config", "get", "base_url"],
  ["config", "set", "pool", "p"],
  ["store", "health"],
  ["exec", MCP, "--", "true"],
  ["mcp", "tools", MCP],
  ["doctor"],
];

describe.skipIf(ON_WINDOWS)("a settings file", () => {
  it.each(UNSAFE.filter(([, , isPossible = true]) => isPossible))(
    "%s is believed by no command and no client",
    async (_what, spoil) => {
      const planted = await plantedHome();
      spoil(planted);
      const { home, ran, thief } = planted;
      for (const args of COMMANDS) {
        const { code, stdout, stderr } = await runCli(args, { env: { AGENTAUTH_HOME: home } });
        expect([args, code]).toEqual([args, 8]);
        expect(stdout + stderr).toMatch(/\bch(?:mod|own) .*\/f-/);
      }
      vi.stubEnv("AGENTAUTH_HOME", home);
      onTestFinished(() => void vi.unstubAllEnvs());
      for (const build of [createAgentClient, createManagementClient, defaultStore])
        expect(() => build()).toThrow(expect.objectContaining({ code: "store_failed", class: "store" }));
      expect([existsSync(ran), thief.requests.length]).toEqual([false, 0]);
    },
  );

  it("is believed where only this user can change it, also behind a link", async () => {
    const { home, ran, thief } = await plantedHome();
    const linked = join(temporaryFolder(), "home");
    mkdirSync(linked);
    symlinkSync(join(home, "config.json"), join(linked, "config.json"));
    await runCli(["devices", "list", "--pool", "p", "--profile", "file"], { env: { AGENTAUTH_HOME: linked } });
    expect(thief.requests[0]?.headers["authorization"]).toBe("Bearer private");
    await runCli(["devices", "list", "--pool", "p"], { env: { AGENTAUTH_HOME: linked } });
    expect(existsSync(ran)).toBe(true);
  });
});
