import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Desk, filesBelow, type Newcomer, SIGN_IN, startDesk } from "./support.js";

const NO_KEYCHAIN = { AGENTAUTH_STORE: "keyring", DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere" };

let desk: Desk;
let me: Newcomer;

beforeAll(async () => {
  desk = await startDesk();
});
afterAll(() => desk.close());
beforeEach(() => {
  me = desk.newcomer();
});

/** The files of logins and clients. */
const kept = () => filesBelow(me.home).filter(({ path }) => /(grants|clients).*\.json$/.test(path));

async function succeed(args: readonly string[], env: Record<string, string>) {
  const result = await me.run(args, { env });
  expect(result.code, result.stderr).toBe(0);
  return result;
}

describe.runIf(process.platform === "linux")("where there is no keychain", () => {
  it("no login starts, nothing is written, and the error names the setting that helps", async () => {
    const { code, stdout, stderr } = await me.run(["token", me.url, ...SIGN_IN], { env: NO_KEYCHAIN });
    expect(code).toBe(8);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^error: there is no keychain here: .*\nhint: .*AGENTAUTH_STORE=file\n$/);
    expect(me.asked().filter((line) => line.includes("authorize"))).toEqual([]);
    expect(kept()).toEqual([]);
  });

  it("logins are kept unsealed where the settings say so, and every command that meets it says so too", async () => {
    await succeed(["config", "set", "store_fallback", "file"], NO_KEYCHAIN);
    const first = await succeed(["token", me.url, ...SIGN_IN], NO_KEYCHAIN);
    expect(first.stderr.match(/^warning: there is no keychain here.*stored unsealed/gm)).toHaveLength(1);
    expect(kept().map(({ text, mode }) => [/"kind": "(grant|client)"/.test(text), mode])).toEqual([
      [true, 0o600],
      [true, 0o600],
    ]);
    expect((await succeed(["token", me.url], NO_KEYCHAIN)).stdout).toBe(first.stdout);
  });

  it("the settings choose the store as the variable does, and a wrong one is refused by name", async () => {
    const { AGENTAUTH_STORE: _chosen, ...env } = NO_KEYCHAIN;
    await succeed(["config", "set", "store", "keyring"], env);
    expect(await me.run(["token", me.url, ...SIGN_IN], { env })).toMatchObject({ code: 8 });
    const wrong = await me.run(["token", me.url], { env: { ...env, AGENTAUTH_STORE: "disk" } });
    expect(wrong).toMatchObject({
      code: 2,
      stderr: 'error: AGENTAUTH_STORE "disk" must be one of file, keyring, memory\n',
    });
  });
});
