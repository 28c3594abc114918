import { describe, expect } from "vitest";
import { ON_LINUX } from "../helpers/systems.js";
import { flowTest, LOGIN_FLAGS, storedLogins, type User } from "./support.js";

const NO_KEYCHAIN = { AGENTAUTH_STORE: "keyring", DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere" };

const it = flowTest();

async function succeed(me: User, args: readonly string[], env: Record<string, string>) {
  const result = await me.run(args, { env });
  expect(result.code, result.stderr).toBe(0);
  return result;
}

describe.runIf(ON_LINUX)("where there is no keychain", () => {
  it("no login starts, nothing is written, and the error names the setting that helps", async ({ me }) => {
    const { code, stdout, stderr } = await me.run(["token", me.url, ...LOGIN_FLAGS], { env: NO_KEYCHAIN });
    expect(code).toBe(8);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^error: there is no keychain here: .*\nhint: .*AGENTAUTH_STORE=file\n$/);
    expect(me.requests().filter((line) => line.includes("authorize"))).toEqual([]);
    expect(storedLogins(me.home)).toEqual([]);
  });

  it("no command says that a login of the file store is sealed", async ({ me }) => {
    await succeed(me, ["token", me.url, ...LOGIN_FLAGS], {});
    for (const args of [["status"], ["status", me.url, "--json"], ["status", "--all"], ["doctor"], ["token", me.url]]) {
      const { code, stdout, stderr } = await me.run(args, { env: NO_KEYCHAIN });
      expect([args, code]).toEqual([args, 8]);
      expect(stdout + stderr).not.toMatch(/(?<!not )sealed with a key in the OS keychain/);
    }
    expect(storedLogins(me.home).every(({ text }) => /"kind": "(grant|client)"/.test(text))).toBe(true);
  });

  it("logins are stored unsealed where the settings allow it, and every command that uses one warns", async ({
    me,
  }) => {
    await succeed(me, ["config", "set", "store_fallback", "file"], NO_KEYCHAIN);
    const first = await succeed(me, ["token", me.url, ...LOGIN_FLAGS], NO_KEYCHAIN);
    expect(first.stderr.match(/^warning: there is no keychain here.*stored unsealed/gm)).toHaveLength(1);
    expect(storedLogins(me.home).map(({ text, mode }) => [/"kind": "(grant|client)"/.test(text), mode])).toEqual([
      [true, 0o600],
      [true, 0o600],
    ]);
    expect((await succeed(me, ["token", me.url], NO_KEYCHAIN)).stdout).toBe(first.stdout);
  });

  it("the settings choose the store as the variable does, and the error names a wrong one", async ({ me }) => {
    const { AGENTAUTH_STORE: _chosen, ...env } = NO_KEYCHAIN;
    await succeed(me, ["config", "set", "store", "keyring"], env);
    expect(await me.run(["token", me.url, ...LOGIN_FLAGS], { env })).toMatchObject({ code: 8 });
    const wrong = await me.run(["token", me.url], { env: { ...env, AGENTAUTH_STORE: "disk" } });
    expect(wrong).toMatchObject({
      code: 2,
      stderr: 'error: AGENTAUTH_STORE "disk" must be one of file, keyring, memory, redis, postgres\n',
    });
  });
});
