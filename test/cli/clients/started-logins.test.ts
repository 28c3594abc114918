import { linkSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  finishCommand,
  isPending,
  LIFE_MS,
  listenerOf,
  pendingLogins,
  readLogin,
  removeListener,
  storeCallback,
  storeInterval,
  storeLogin,
  takeCallback,
} from "../../../src/cli/clients/started-logins.js";
import { encodeLogin, type StoredLogin } from "../../../src/oauth/login/login-codec.js";
import { temporaryFolder } from "../../helpers/cli.js";
import { DEVICE_LOGIN } from "./device-login.js";

const ID = "abcdefghijkl";

function arrange(...names: string[]) {
  const home = temporaryFolder();
  const folder = join(home, "logins");
  mkdirSync(folder, { mode: 0o700 });
  for (const name of names) writeFileSync(join(folder, name), "{}", { mode: 0o600 });
  return { folder, files: { home: () => home, now: () => Date.now() }, names: () => readdirSync(folder).sort() };
}

describe("the files of started logins", () => {
  it("have no callback of a login that was removed while it was stored", () => {
    const removed = arrange();
    storeCallback(ID, new URLSearchParams("code=c&state=s"), removed.files);
    expect(removed.names()).toEqual([]);
    const pending = arrange(`${ID}.json`);
    storeCallback(ID, new URLSearchParams("code=c&state=s"), pending.files);
    expect(pending.names()).toEqual([`${ID}.callback`, `${ID}.json`]);
  });

  it("lose callbacks and listeners without a login when the next one starts, and nothing else", async () => {
    const kept = ["bbbbbbbbbbbb.callback", "bbbbbbbbbbbb.json", "bbbbbbbbbbbb.listener", "notes.txt"];
    const { files, names } = arrange(`${ID}.callback`, "aaaaaaaaaaaa.listener", ...kept);
    await storeLogin("cccccccccccc", { profile: "default" } as StoredLogin, files);
    expect(names()).toEqual([...kept, "cccccccccccc.json"].sort());
  });

  it("are in one folder, whatever an id names", () => {
    const { files } = arrange();
    for (const id of ["../../secret", "", "a/bcdefghijk", `${ID}x`]) {
      expect(() => readLogin(id, "https://mcp.example/mcp", files)).toThrow("is not a login id");
    }
  });

  it("hold what decides a login of its callback, and nothing else", () => {
    const { files, folder } = arrange(`${ID}.json`);
    storeCallback(ID, new URLSearchParams("code=c&state=s&iss=i&session=private&id_token=private"), files);
    expect(readFileSync(join(folder, `${ID}.callback`), "utf8")).toBe("code=c&state=s&iss=i\n");
  });

  it("give a callback to one taker, once, and leave nothing of it", () => {
    const { files, names } = arrange(`${ID}.json`);
    storeCallback(ID, new URLSearchParams("code=c&state=s"), files);
    expect(takeCallback(ID, files)?.get("code")).toBe("c");
    expect(takeCallback(ID, files)).toBeUndefined();
    expect(names()).toEqual([`${ID}.json`]);
  });

  it("give no callback that another name leads to", () => {
    const { files, folder, names } = arrange(`${ID}.json`, "foreign");
    linkSync(join(folder, "foreign"), join(folder, `${ID}.callback`));
    expect(() => takeCallback(ID, files)).toThrow("another name");
    expect(names()).toEqual([`${ID}.callback`, `${ID}.json`, "foreign"]);
  });

  it("are waited for only as long as both the login and its listener are there", () => {
    const { files } = arrange(`${ID}.json`, `${ID}.listener`);
    expect(isPending(ID, files)).toBe(true);
    removeListener(ID, files);
    expect(isPending(ID, files)).toBe(false);
    const { files: removed } = arrange(`${ID}.listener`);
    expect(isPending(ID, removed)).toBe(false);
  });

  it("name no listener without the id of its process", () => {
    const { files } = arrange(`${ID}.json`, `${ID}.listener`);
    expect(listenerOf(ID, files)).toBeUndefined();
  });

  it("expire at the same time, however often the interval of a device login grows", async () => {
    const { files, folder } = arrange();
    await storeLogin(ID, DEVICE_LOGIN, files);
    const path = join(folder, `${ID}.json`);
    const begun = new Date(Math.floor(Date.now() / 1000 - 60) * 1000);
    utimesSync(path, begun, begun);
    storeInterval(ID, 10, files);
    expect(statSync(path).mtimeMs).toBe(begun.getTime());
    const [pending] = pendingLogins(files);
    expect(pending).toMatchObject({ login: { device: { intervalSeconds: 10 } }, expiresAt: begun.getTime() + LIFE_MS });
  });

  it.each([
    ["verificationUri", "https://as.example/device"],
    ["tokenEndpoint", DEVICE_LOGIN.issuer.tokenEndpoint],
  ])("cannot be used where %s is no address", (member, value) => {
    const { files, folder } = arrange();
    const text = encodeLogin(DEVICE_LOGIN).replace(`"${member}": "${value}"`, `"${member}": "nowhere"`);
    writeFileSync(join(folder, `${ID}.json`), text, { mode: 0o600 });
    expect(() => readLogin(ID, "https://mcp.example/mcp", files)).toThrow(`${member} is not an address`);
  });

  it("are not listed after they have expired", () => {
    const { files, folder } = arrange();
    writeFileSync(join(folder, `${ID}.json`), encodeLogin(DEVICE_LOGIN), { mode: 0o600 });
    expect(pendingLogins(files)).toHaveLength(1);
    expect(pendingLogins({ ...files, now: () => Date.now() + LIFE_MS + 1 })).toEqual([]);
  });
});

it("the command that finishes a login names its profile and account, quoted for a shell", () => {
  const login = { ...DEVICE_LOGIN, profile: "a; touch x #", account: "it's me" };
  expect(finishCommand(ID, login)).toBe(
    `agentauth login https://mcp.example/mcp --wait ${ID} --profile 'a; touch x #' --account-hint 'it'\\''s me'`,
  );
});
