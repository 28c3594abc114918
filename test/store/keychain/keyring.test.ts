import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Grant } from "../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { type Keychain, keychainError, limitKeychain, osKeychain } from "../../../src/store/keychain/keychain.js";
import { type KeyringStoreOptions, keychainAccount, keyringStore } from "../../../src/store/keychain/keyring.js";
import { replacePublishedFile } from "../../../src/store/private/private-file.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant, plainGrant } from "../../helpers/grant.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { onSystem } from "../../platform/support.js";
import { folder } from "../stores.js";
import { type FakeKeychain, fakeKeychain } from "./keychains.js";

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const OTHER = { profile: "default", server: "https://other.example/mcp" };
const FORM = "http://127.0.0.1/callback";
const ISSUER = madeClient().issuer;
const KEY_TEXT = Buffer.alloc(32, 1).toString("base64url");
const OTHER_KEY_TEXT = Buffer.alloc(32, 2).toString("base64url");

/** Every file of logins and clients with its text. */
function kept(home: string): Map<string, string> {
  const entries = readdirSync(home, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".json"));
  return new Map(
    files.map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), "utf8")]),
  );
}

const kindsOf = (home: string) => [...kept(home).values()].map((text) => (JSON.parse(text) as { kind: string }).kind);
const serversOf = (grants: Grant[]) => grants.map(({ server }) => server);

/** A folder with the grants of {@link KEY} and {@link OTHER} and a client, and the keychain that has its key. */
async function filled(options: KeyringStoreOptions = {}) {
  const home = folder();
  const keychain = fakeKeychain(KEY_TEXT);
  const open = (more: KeyringStoreOptions = {}) => keyringStore(home, { keychain, ...options, ...more });
  const store = open();
  await store.save(madeGrant(KEY), undefined);
  const [path = ""] = kept(home).keys();
  await store.save(madeGrant(OTHER), undefined);
  await store.saveClient(madeClient(), FORM);
  keychain.calls.length = 0;
  return { home, keychain, open, path };
}

describe("what is written", () => {
  it("is sealed, and opens again in another store on the same folder", async () => {
    const { home, open } = await filled();
    expect(kindsOf(home)).toEqual(["sealed", "sealed", "sealed"]);
    for (const text of kept(home).values()) expect(text).not.toMatch(/-token-1|client-secret-1|mcp\.example/);
    const grant = await open().read(KEY);
    expect(grant && plainGrant(grant)).toEqual(plainGrant(madeGrant(KEY)));
    expect((await open().readClient(ISSUER, FORM))?.clientSecret?.reveal()).toBe("client-secret-1");
    expect(serversOf(await open().list()).sort()).toEqual([KEY.server, OTHER.server].sort());
  });

  it("brings a key of 32 bytes into the keychain and nothing else, however long the tokens are", async () => {
    const keychain = fakeKeychain();
    const store = keyringStore(folder(), { keychain });
    const grant = madeGrant();
    const accessToken = new Secret("x".repeat(20_000));
    await store.save({ ...grant, tokens: { ...grant.tokens, accessToken } }, undefined);
    expect(Buffer.from(keychain.value ?? "", "base64url")).toHaveLength(32);
    expect((await store.read(KEY))?.tokens.accessToken.reveal()).toBe(accessToken.reveal());
  });
});

describe("what a file store has written before", () => {
  async function plainLogins() {
    const home = folder();
    const files = fileStore(home);
    await files.save(madeGrant(KEY), undefined);
    await files.save(madeGrant(OTHER), undefined);
    await files.saveClient(madeClient(), FORM);
    await files.unrevoked?.add(madeGrant({ profile: "other" }));
    const keychain = fakeKeychain();
    const open = (more: KeyringStoreOptions = {}) => keyringStore(home, { keychain, ...more });
    const hasTokens = () => [...kept(home).values()].some((text) => /-token-1|client-secret-1/.test(text));
    return { home, keychain, open, hasTokens };
  }

  it.each<[string, (store: GrantStore) => Promise<unknown>]>([
    ["the read of a login", (store) => store.read(KEY)],
    ["a list of the logins at a server", (store) => store.list({ server: KEY.server })],
    ["the read of a client", (store) => store.readClient(ISSUER, FORM)],
    ["a refresh", async (store) => (await store.reserve(KEY)).release()],
  ])("is sealed as a whole by %s", async (_what, work) => {
    const { home, open, hasTokens } = await plainLogins();
    const store = open();
    expect(store.location).toContain("to be sealed");
    await work(store);
    expect([new Set(kindsOf(home)), hasTokens()]).toEqual([new Set(["sealed"]), false]);
    expect(store.location).toBe(`files under ${home}, sealed with a key in the OS keychain`);
    expect(serversOf(await open().list()).sort()).toEqual([KEY.server, OTHER.server].sort());
    expect(await open().save(madeGrant({ generation: 2 }), 1)).toBe(true);
  });

  it("is sealed but for what cannot be used, which is an error where it is used", async () => {
    const { home, open } = await plainLogins();
    const [path = ""] = [...kept(home).keys()].filter((one) => one.includes("clients"));
    writeFileSync(path, "broken");
    const store = open();
    expect((await store.read(KEY))?.server).toBe(KEY.server);
    await expect(store.readClient(ISSUER, FORM)).rejects.toMatchObject({ code: "store_failed" });
    expect(readFileSync(path, "utf8")).toBe("broken");
  });

  it("is sealed once where many processes read it, and a save that began before is no conflict", async () => {
    const { home, open, keychain } = await plainLogins();
    const reserved = await open().reserve(KEY);
    const grants = await Promise.all(Array.from({ length: 8 }, () => open().read(OTHER)));
    expect(grants.map((grant) => grant?.server)).toEqual(Array(8).fill(OTHER.server));
    await open().list();
    expect(await reserved.save(madeGrant({ generation: 2 }), 1)).toBe(true);
    await reserved.release();
    expect(new Set(kindsOf(home))).toEqual(new Set(["sealed"]));
    expect(keychain.calls.filter((call) => call === "set")).toHaveLength(1);
    expect(readdirSync(home, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tmp"))).toEqual(
      [],
    );
  });

  it.each(["none", "file"] as const)(
    "is said to be unsealed without a keychain, with the fallback %s",
    async (fallback) => {
      const { home, open, keychain, hasTokens } = await plainLogins();
      keychain.refusal = "locked";
      const store = open({ fallback });
      const reading = store.read(KEY);
      if (fallback === "file") expect((await reading)?.server).toBe(KEY.server);
      else {
        expect(await pendingError(reading)).toMatchObject({ class: "store" });
        expect(await pendingError(store.list())).toMatchObject({ class: "store" });
        expect(await pendingError(store.reserve(KEY))).toMatchObject({ class: "store" });
      }
      expect([kindsOf(home).includes("sealed"), hasTokens()]).toEqual([false, true]);
      expect(store.location).not.toMatch(/(?<!not )sealed/);
      keychain.refusal = undefined;
      expect(await open({ fallback }).list()).toHaveLength(2);
      expect(new Set(kindsOf(home))).toEqual(new Set(["sealed"]));
    },
  );

  it("is not given back by a process that seals it while another one removes it", async () => {
    const { home, open } = await plainLogins();
    const [path = ""] = [...kept(home).keys()].filter((one) => one.includes("grants"));
    const text = readFileSync(path, "utf8");
    expect(replacePublishedFile(path, "other", "sealed")).toBe(true);
    expect(readFileSync(path, "utf8")).toBe(text);
    writeFileSync(`${path}.replaced.tmp`, "another process");
    expect(replacePublishedFile(path, text, "sealed")).toBe(false);
    for (const key of [KEY, OTHER]) await open().remove(key);
    expect(existsSync(`${path}.replaced.tmp`)).toBe(false);
    expect(replacePublishedFile(path, text, "sealed")).toBe(true);
    expect(existsSync(path)).toBe(false);
  });
});

describe("the keychain", () => {
  it("is left alone until something sealed is read or something is saved", async () => {
    const keychain = fakeKeychain();
    const store = keyringStore(folder(), { keychain });
    expect(store.location).toMatch(/^files under .*, to be sealed with a key in the OS keychain$/);
    expect(await store.read(KEY)).toBeUndefined();
    expect(await store.list()).toEqual([]);
    expect(await store.readClient(ISSUER, FORM)).toBeUndefined();
    await store.remove(KEY);
    expect(keychain.calls).toEqual([]);
  });

  it("is written to once, and read back", async () => {
    const keychain = fakeKeychain();
    const store = keyringStore(folder(), { keychain });
    await Promise.all([store.save(madeGrant(KEY), undefined), store.save(madeGrant(OTHER), undefined)]);
    expect(keychain.calls.filter((call) => call === "set")).toHaveLength(1);
    expect(keychain.calls.at(-1)).toBe("get");
  });

  it("is read once by each store, whatever is read, saved and refreshed", async () => {
    const { open, keychain } = await filled();
    const store = open();
    await Promise.all([store.read(KEY), store.read(OTHER), store.list(), store.readClient(ISSUER, FORM)]);
    for (let generation = 1; generation < 4; generation++) {
      expect(await store.save(madeGrant({ ...KEY, generation: generation + 1 }), generation)).toBe(true);
    }
    expect(keychain.calls).toEqual(["get"]);
  });

  it("is asked when room is reserved, before anything is spent that has to be saved", async () => {
    const keychain = fakeKeychain();
    keychain.refusal = "locked";
    expect(await pendingError(keyringStore(folder(), { keychain }).reserve(KEY))).toMatchObject({ class: "store" });
  });

  it("has the last word on which key it is", async () => {
    const home = folder();
    const keychain = fakeKeychain();
    const stubborn: Keychain = { get: keychain.get, set: async () => keychain.set(KEY_TEXT) };
    await keyringStore(home, { keychain: stubborn }).save(madeGrant(), undefined);
    expect(await keyringStore(home, { keychain: fakeKeychain(KEY_TEXT) }).read(KEY)).toBeDefined();
  });

  it("is not trusted when it takes a key and does not give it back", async () => {
    const home = folder();
    const forgetful: Keychain = { get: async () => undefined, set: async () => undefined };
    const saving = keyringStore(home, { keychain: forgetful }).save(madeGrant(), undefined);
    expect(await pendingError(saving)).toMatchObject({ code: "store_failed" });
    expect(kept(home).size).toBe(0);
  });

  it.each(["", "hunter2", `${KEY_TEXT}=`, Buffer.alloc(16).toString("base64url")])(
    "is not written over when it has %j in the key's place",
    async (value) => {
      const keychain = fakeKeychain(value);
      const saving = keyringStore(folder(), { keychain }).save(madeGrant(), undefined);
      expect(await pendingError(saving)).toMatchObject({ class: "store" });
      expect(keychain.value).toBe(value);
    },
  );

  it("is asked again where it had no key, since another process may have made one", async () => {
    const { open } = await filled();
    const keychain = fakeKeychain();
    const store = open({ keychain });
    expect(await pendingError(store.read(KEY))).toMatchObject({ class: "auth" });
    keychain.value = KEY_TEXT;
    expect(await store.read(KEY)).toBeDefined();
  });
});

describe("a keychain that cannot be used", () => {
  it("fails every call that needs it, writes nothing, and is asked once", async () => {
    const { home, open, keychain } = await filled();
    const before = kept(home);
    keychain.refusal = "locked";
    const store = open();
    const refusal = { code: "store_failed", class: "store", message: expect.stringContaining('"locked"') };
    expect(await pendingError(store.list())).toMatchObject(refusal);
    expect(await pendingError(store.read(KEY))).toMatchObject(refusal);
    expect(await pendingError(store.readClient(ISSUER, FORM))).toMatchObject(refusal);
    expect(await pendingError(store.save(madeGrant({ generation: 2 }), 1))).toMatchObject(refusal);
    expect(await pendingError(store.save(madeGrant({ profile: "more" }), undefined))).toMatchObject(refusal);
    expect(await pendingError(store.saveClient(madeClient({ issuer: "https://more.example" }), FORM))).toMatchObject(
      refusal,
    );
    expect(kept(home)).toEqual(before);
    expect(keychain.calls).toEqual(["get"]);
    expect(store.location).toBe(`files under ${home}, which need the OS keychain: it cannot be used`);
  });

  it("is asked again by a store that is opened again", async () => {
    const { open, keychain } = await filled();
    keychain.refusal = "locked";
    expect(await pendingError(open().read(KEY))).toMatchObject({ class: "store" });
    keychain.refusal = undefined;
    expect(await open().read(KEY)).toBeDefined();
  });

  it("lets logins be removed all the same", async () => {
    const { open, keychain } = await filled();
    keychain.refusal = "locked";
    await open().remove(KEY);
    keychain.refusal = undefined;
    expect(serversOf(await open().list())).toEqual([OTHER.server]);
  });

  it("times out when it does not answer", async () => {
    const { open } = await filled();
    const never = () => new Promise<never>(() => undefined);
    const store = open({ keychain: { get: never, set: never }, timeoutMs: 20 });
    expect(await pendingError(store.read(KEY))).toMatchObject({ code: "store_failed" });
  });
});

describe("with the fallback to files", () => {
  async function refused() {
    const made = await filled();
    const reported: string[] = [];
    made.keychain.refusal = "locked";
    const store = made.open({ fallback: "file", onFallback: (reason) => reported.push(reason) });
    return { ...made, store, reported };
  }

  it("says in advance that files may not be sealed, and then that they are not", async () => {
    const { store, home } = await refused();
    expect(store.location).toBe(
      `files under ${home}, to be sealed with a key in the OS keychain, or not sealed where it cannot be used`,
    );
    await store.save(madeGrant({ profile: "new" }), undefined);
    expect(store.location).toBe(`files under ${home}, not sealed, since the OS keychain cannot be used`);
  });

  it("writes plain private files, and says why, once, before it does", async () => {
    const { store, reported, home, keychain } = await refused();
    const sealed = kept(home);
    const room = await store.reserve({ profile: "new", server: KEY.server });
    expect(reported).toEqual([expect.stringContaining('"locked"')]);
    await room.release();
    await store.save(madeGrant({ profile: "new" }), undefined);
    await store.save(madeGrant({ profile: "newer" }), undefined);
    expect(reported).toHaveLength(1);
    const added = [...kept(home)].filter(([path]) => !sealed.has(path));
    expect(added.map(([, text]) => (JSON.parse(text) as { kind: string }).kind)).toEqual(["grant", "grant"]);
    if (!ON_WINDOWS) for (const [path] of added) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect((await store.read({ profile: "new", server: KEY.server }))?.tokens.accessToken.reveal()).toBe(
      "access-token-1",
    );
    expect(keychain.calls).toEqual(["get"]);
  });

  it("leaves what is sealed as it is: not read, not written over, out of the list", async () => {
    const { store, home } = await refused();
    const before = kept(home);
    const refusal = { class: "store", message: expect.stringMatching(/it is sealed.*"locked"/) };
    expect(await pendingError(store.read(KEY))).toMatchObject(refusal);
    expect(await pendingError(store.save(madeGrant({ generation: 2 }), 1))).toMatchObject(refusal);
    expect(await pendingError(store.saveClient(madeClient({ clientId: "other" }), FORM))).toMatchObject(refusal);
    expect(await store.list()).toEqual([]);
    expect(kept(home)).toEqual(before);
  });

  it("seals again once the keychain can be used", async () => {
    const { store, home, keychain, open } = await refused();
    await store.save(madeGrant({ profile: "new" }), undefined);
    keychain.refusal = undefined;
    const later = open({ fallback: "file" });
    expect(await later.list()).toHaveLength(3);
    await later.save(madeGrant({ profile: "new", generation: 2 }), 1);
    expect(kindsOf(home)).toEqual(["sealed", "sealed", "sealed", "sealed"]);
  });

  it("is not used where the keychain works", async () => {
    const { open, home } = await filled();
    const reported: string[] = [];
    const store = open({ fallback: "file", onFallback: (reason) => reported.push(reason) });
    await store.save(madeGrant({ profile: "new" }), undefined);
    expect(kindsOf(home)).toEqual(["sealed", "sealed", "sealed", "sealed"]);
    expect(reported).toEqual([]);
    expect(store.location).toBe(`files under ${home}, sealed with a key in the OS keychain`);
  });
});

describe("a file that does not open", () => {
  /** It is refused with the reason and kept, and the other grant is as it was. */
  async function expectKept(
    { home, open, path }: Awaited<ReturnType<typeof filled>>,
    keychain: FakeKeychain,
    why: RegExp,
  ) {
    const before = kept(home);
    const store = open({ keychain });
    const refusal = { code: "login_required", class: "auth", message: expect.stringMatching(why) };
    expect(await pendingError(store.read(KEY))).toMatchObject({
      ...refusal,
      hint: expect.stringContaining(`mv ${path}`),
    });
    expect(await pendingError(store.save(madeGrant({ generation: 2 }), 1))).toMatchObject(refusal);
    expect(kept(home)).toEqual(before);
    return store;
  }

  it("says that its key is another one: it comes from another machine, or the key was lost", async () => {
    const made = await filled();
    const store = await expectKept(made, fakeKeychain(OTHER_KEY_TEXT), /sealed with the key .* another machine/);
    await store.save(madeGrant({ profile: "new" }), undefined);
    expect((await store.list()).map(({ profile }) => profile)).toEqual(["new"]);
  });

  it("says that the keychain has no key, and makes none by reading", async () => {
    const made = await filled();
    const keychain = fakeKeychain();
    expect(await pendingError(made.open({ keychain }).read(KEY))).toMatchObject({
      code: "login_required",
      class: "auth",
    });
    expect(keychain.calls).toEqual(["get"]);
    expect(keychain.value).toBeUndefined();
  });

  it("says that it was changed, and leaves the others readable", async () => {
    const made = await filled();
    const sealed = JSON.parse(readFileSync(made.path, "utf8")) as { data: string };
    const data = (sealed.data.startsWith("A") ? "B" : "A") + sealed.data.slice(1);
    writeFileSync(made.path, JSON.stringify({ ...sealed, data }));
    const store = await expectKept(made, made.keychain, /changed after it was sealed/);
    expect(serversOf(await store.list())).toEqual([OTHER.server]);
  });

  it("says so of one that was put in another's place", async () => {
    const made = await filled();
    const [other = ""] = [...kept(made.home).keys()].filter((path) => path !== made.path && path.includes("grants"));
    writeFileSync(made.path, readFileSync(other));
    const store = await expectKept(made, made.keychain, /another file was put in its place/);
    expect(serversOf(await store.list())).toEqual([OTHER.server]);
  });

  it("is not overwritten by a client that is registered again", async () => {
    const { home, open } = await filled();
    const before = kept(home);
    const saving = open({ keychain: fakeKeychain(OTHER_KEY_TEXT) }).saveClient(madeClient({ clientId: "new" }), FORM);
    expect(await pendingError(saving)).toMatchObject({ class: "auth" });
    expect(kept(home)).toEqual(before);
  });
});

describe("the keychain's account", () => {
  it("is one for each folder", () => {
    const home = folder();
    expect(keychainAccount(home)).toMatch(/^store-key [\da-f]{16}$/);
    expect(keychainAccount(join(home, "a"))).not.toBe(keychainAccount(join(home, "b")));
  });

  it.skipIf(ON_WINDOWS)("is the same by every path, before the folder is there and after", () => {
    const home = folder();
    symlinkSync(home, join(home, "link"));
    const direct = join(home, "deep", "store");
    const linked = join(home, "link", "deep", "store");
    const before = keychainAccount(direct);
    expect(keychainAccount(linked)).toBe(before);
    mkdirSync(direct, { recursive: true });
    expect(keychainAccount(direct)).toBe(before);
    expect(keychainAccount(linked)).toBe(before);
    symlinkSync("loop", join(home, "loop"));
    expect(keychainAccount(join(home, "link", "loop"))).toBe(keychainAccount(join(home, "loop")));
  });
});

const { execPath } = process;
afterEach(() => {
  process.execPath = execPath;
});

describe("a keychain without a time limit", () => {
  const never = () => new Promise<never>(() => undefined);

  it("times out", async () => {
    const limited = limitKeychain({ get: never, set: never }, 20);
    expect(await pendingError(limited.get())).toMatchObject({ code: "store_failed" });
    expect(await pendingError(limited.set("x"))).toMatchObject({ code: "store_failed" });
  });

  it("answers as it did", async () => {
    const written: string[] = [];
    const limited = limitKeychain({ get: async () => "x", set: async (value) => void written.push(value) });
    expect(await limited.get()).toBe("x");
    await limited.set("y");
    expect(written).toEqual(["y"]);
  });
});

it("what a keychain throws becomes an error of ours, once", () => {
  const cause = new Error("no");
  const error = keychainError(cause);
  expect(error).toMatchObject({
    code: "store_failed",
    class: "store",
    message: expect.stringContaining('"no"'),
    cause,
  });
  expect(keychainError(error)).toBe(error);
});

it("a keychain without its optional package says how to install it, and how to do without", async () => {
  const cause = new Error("Cannot find module");
  const resolve = () => {
    throw cause;
  };
  vi.doMock("node:module", () => ({ createRequire: () => ({ resolve }) }));
  vi.resetModules();
  onTestFinished(() => {
    vi.doUnmock("node:module");
    vi.resetModules();
  });
  const fresh = await import("../../../src/store/keychain/keychain.js");
  await expect(fresh.osKeychain("a").get()).rejects.toMatchObject({
    code: "store_failed",
    message: "the keychain needs the optional package @napi-rs/keyring, which is not installed",
    hint:
      "npm install @napi-rs/keyring (with --global if agentauth is installed globally), " +
      "or store logins in files that only you can read: AGENTAUTH_STORE=file",
    cause,
  });
});

describe("a keychain that is asked by a process of this program", () => {
  it.each(["node", "nodejs", "node20", "node-22.1.0", "node.exe", "NODE.EXE", "Node22.exe"])(
    "is asked where the program is %s",
    async (name) => {
      // It is not there, so that nothing starts.
      process.execPath = join(folder(), "none", name);
      const keychain = osKeychain("a", { package: "/none" });
      const failed = { code: "store_failed", message: "the keychain could not be queried: its helper process exited" };
      for (const work of [keychain.get(), keychain.set("x")]) expect(await pendingError(work)).toMatchObject(failed);
    },
  );

  it.each(["electron", "mynode", "node-red", "nodes", "node.exe.old", "node.com", "my node"])(
    "is not asked where the program is %s",
    async (name) => {
      process.execPath = `/opt/${name}`;
      expect(await pendingError(osKeychain("a", { package: "/none" }).get())).toMatchObject({
        message: `the keychain can be used where Node runs the program, not "/opt/${name}"`,
      });
    },
  );
});

describe.skipIf(ON_WINDOWS)("the reply of a process that asks the keychain", () => {
  /** A keychain whose process runs these words of a shell. */
  function replying(words: string, timeoutMs?: number, env?: Record<string, string>) {
    process.execPath = join(folder(), "node");
    writeFileSync(process.execPath, `#!/bin/sh\n${words}\n`, { mode: 0o700 });
    return osKeychain("a", { package: "/none", timeoutMs, env: env && { PATH: process.env["PATH"], ...env } });
  }

  it("comes from the program, which gets the secret by its input alone", async () => {
    const leaving = process.listenerCount("exit");
    const { set } = replying(
      `cat > request; pwd > where; printf '%s\\n' "$#" "$1" "$2" > words; printf %s "$3" > program; echo "$ONLY $HOME" > env
      echo noise >&2; echo '{"outcome":"done"}'`,
      undefined,
      { ONLY: "this" },
    );
    await set("the secret");
    expect(process.listenerCount("exit")).toBe(leaving);
    const at = dirname(process.execPath);
    const [request = "", where, words, program, env] = ["request", "where", "words", "program", "env"].map((name) =>
      readFileSync(join(at, name), "utf8"),
    );
    expect(JSON.parse(request)).toEqual({ package: "/none", service: "agentauth", account: "a", value: "the secret" });
    expect([where, words, env]).toEqual([`${at}\n`, "3\n--input-type=commonjs\n-e\n", "this \n"]);
    expect(program).toContain("new keyring.Entry(");
  });

  const saying = (reply: unknown) => replying(`echo '${JSON.stringify(reply)}'`);

  it.each([
    ["no entry", { outcome: "done" }, undefined],
    ["an entry", { outcome: "done", value: "x" }, "x"],
    ["an entry that is no text", { outcome: "done", value: 7 }, undefined],
  ])("may be %s", async (_what, reply, value) => {
    expect(await saying(reply).get()).toBe(value);
  });

  it.each<[string, unknown]>([
    ["that is none", []],
    ["of another version", { outcome: "other" }],
    ["that the package is unusable", { outcome: "unusable", message: "no native binding" }],
    ...[
      "Platform failure: DBus error: Failed to connect",
      "a d-bus ERROR",
      "The name org.freedesktop.secrets was not provided",
      "Secret Service: no result found",
      "Couldn't access platform storage",
      "it is locked",
      "unlock it",
      "the prompt was dismissed",
      "access denied",
      "canceled",
      "Cancelled",
      "no user interaction",
      "a wrong passphrase",
      "would block for ever",
      "a padlock",
    ].map((message): [string, unknown] => [
      `that it is refused with ${JSON.stringify(message)}`,
      { outcome: "refused", message },
    ]),
  ])("%s has an error of its own", async (_what, reply) => {
    expect(await pendingError(saying(reply).get())).toMatchObject({ code: "store_failed", class: "store" });
  });

  it.each([
    ["darwin", "security unlock-keychain, and run the command again"],
    ["linux", "unlock it, and run the command again"],
  ] as const)("has the advice for %s where it is locked", async (name, advice) => {
    onSystem({ name });
    const reply = saying({ outcome: "refused", message: "it is locked" });
    await expect(reply.get()).rejects.toMatchObject({ hint: expect.stringContaining(advice) });
  });

  it("is waited for as long as a call may take", async () => {
    expect(await pendingError(replying("exec sleep 60", 20).get())).toMatchObject({ code: "store_failed" });
  });
});
