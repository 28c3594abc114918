import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/profile/open-store.js";
import { isEngine, type Profile, readTakeover } from "../../src/profile/profile-settings.js";
import { chooseStore, readStoreChoice, type StoreChoice } from "../../src/profile/store-choice.js";
import { newKeys, readKeys } from "../../src/profile/store-keys.js";
import { pendingError } from "../helpers/captured.js";
import { temporaryFolder } from "../helpers/folder.js";
import { madeGrant } from "../helpers/grant.js";
import { grantFile, grantFiles } from "../helpers/grant-files.js";
import { createMemoryIo } from "../helpers/memory-io.js";
import { ON_LINUX } from "../helpers/systems.js";

const profile = (entries: Profile = {}) => ({ name: "work", entries });

function refusal(choose: () => unknown): unknown {
  try {
    return choose();
  } catch (error) {
    return error;
  }
}

describe("the store of a run", () => {
  it.each<[string, Record<string, string>, { store?: string; store_fallback?: string }, StoreChoice]>([
    ["is files", {}, {}, { value: "file", source: "default", fallback: "none" }],
    [
      "is what the profile says",
      {},
      { store: "keyring" },
      { value: "keyring", source: "profile work", fallback: "none" },
    ],
    [
      "is what the variable says, whatever the profile says",
      { AGENTAUTH_STORE: "memory" },
      { store: "keyring" },
      { value: "memory", source: "AGENTAUTH_STORE", fallback: "none" },
    ],
    [
      "is what the profile says where the variable is empty",
      { AGENTAUTH_STORE: "" },
      { store: "memory" },
      { value: "memory", source: "profile work", fallback: "none" },
    ],
    [
      "has the profile's fallback, whatever chose the store",
      { AGENTAUTH_STORE: "keyring" },
      { store_fallback: "file" },
      { value: "keyring", source: "AGENTAUTH_STORE", fallback: "file" },
    ],
  ])("%s", (_what, env, entries, wanted) => {
    expect(chooseStore(env, profile(entries))).toEqual(wanted);
  });

  it.each<[string, Record<string, string>, Profile, object]>([
    ["patient, and that of no tenant", {}, {}, { takeover: "patient", tenant: undefined }],
    [
      "what the profile says",
      {},
      { store_takeover: "fast", store_tenant: "acme" },
      { takeover: "fast", tenant: "acme" },
    ],
    [
      "what the variables say, whatever the profile says",
      { AGENTAUTH_STORE_TAKEOVER: "patient", AGENTAUTH_STORE_TENANT: "other" },
      { store_takeover: "fast", store_tenant: "acme" },
      { takeover: "patient", tenant: "other" },
    ],
  ])("in an engine is %s", (_what, env, entries, wanted) => {
    expect(chooseStore({ ...env, AGENTAUTH_STORE: "redis" }, { name: "work", entries }).engine).toMatchObject(wanted);
  });

  it("in an engine has its address and its keys from the variables, else from the profile, itself or by reference", () => {
    const entries = { store: "postgres", store_url: "env:A_URL", store_keys: "none" };
    const of = (env: Record<string, string>, profileEntries: Profile = entries) => {
      const { url, keys } = chooseStore(env, profile(profileEntries)).engine ?? {};
      return [url?.read(), url?.source, keys?.read(), keys?.source];
    };
    const named = ["postgres://a", "profile work, A_URL", "none", "profile work"];
    expect(of({ A_URL: "postgres://a" })).toEqual(named);
    expect(of({ A_URL: "postgres://a", AGENTAUTH_STORE_URL: "", AGENTAUTH_STORE_KEYS: "" })).toEqual(named);
    expect(of({ AGENTAUTH_STORE_URL: "postgres://b", AGENTAUTH_STORE_KEYS: "env:K", K: "ring" })).toEqual([
      "postgres://b",
      "AGENTAUTH_STORE_URL",
      "ring",
      "AGENTAUTH_STORE_KEYS, K",
    ]);
    expect(of({}, { store: "redis" })).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("that is no engine has nothing of one", () => {
    expect(isEngine("redis") && isEngine("postgres")).toBe(true);
    for (const kind of ["file", "keyring", "memory"] as const) expect(isEngine(kind)).toBe(false);
  });

  it("of a profile is read from the settings file", () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "config.json"), '{"profiles":{"work":{"store":"memory"}}}');
    expect(readStoreChoice("work", {}, folder)).toMatchObject({ value: "memory", source: "profile work" });
    expect(readStoreChoice("other", {}, folder)).toMatchObject({ value: "file", source: "default" });
  });

  it("takes over by the issuer where the setting names it", () => {
    const takeover = readTakeover("patient https://fast.example=fast http://127.0.0.1:9/a=fast");
    const issuers = ["https://fast.example", "http://127.0.0.1:9/a", "https://fast.example/", "https://other.example"];
    expect(issuers.map(takeover)).toEqual(["fast", "fast", "patient", "patient"]);
    for (const text of [
      "",
      "slow",
      "fast https://a.example",
      "fast https://a.example=slow",
      "fast ftp://a.example=fast",
    ])
      expect(() => readTakeover(text), text).toThrow(TypeError);
  });

  it.each<[Record<string, string>, Profile, string]>([
    [
      { AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_TAKEOVER: "slow" },
      {},
      'AGENTAUTH_STORE_TAKEOVER "slow" must be patient or fast, and may name issuers after that: patient https://issuer.example=fast',
    ],
    [
      {},
      { store: "redis", store_takeover: "no" },
      'store_takeover of profile work "no" must be patient or fast, and may name issuers after that: patient https://issuer.example=fast',
    ],
    [{ AGENTAUTH_STORE: "disk" }, {}, 'AGENTAUTH_STORE "disk" must be one of file, keyring, memory, redis, postgres'],
    [{ AGENTAUTH_STORE: "File" }, {}, 'AGENTAUTH_STORE "File" must be one of file, keyring, memory, redis, postgres'],
    [{}, { store: "disk" }, 'store of profile work "disk" must be one of file, keyring, memory, redis, postgres'],
    [{}, { store_fallback: "memory" }, 'store_fallback of profile work "memory" must be one of none, file'],
    [
      { AGENTAUTH_STORE: "\u001b[2J" },
      {},
      'AGENTAUTH_STORE "\\e[2J" must be one of file, keyring, memory, redis, postgres',
    ],
  ])("is refused by name and value: %j %j", (env, entries, message) => {
    expect(refusal(() => chooseStore(env, profile(entries)))).toMatchObject({ code: "usage", class: "usage", message });
  });
});

describe("a store that is opened", () => {
  const choice = (value: StoreChoice["value"], fallback: StoreChoice["fallback"] = "none"): StoreChoice => ({
    value,
    source: "default",
    fallback,
  });

  function home(): string {
    const path = mkdtempSync(join(tmpdir(), "agentauth-store-choice-"));
    onTestFinished(() => rmSync(path, { recursive: true, force: true }));
    return path;
  }

  it("is the one that was chosen", () => {
    const io = createMemoryIo();
    expect(openStore(choice("memory"), () => "/h", io).location).toBe("memory");
    const engine = { url: undefined, keys: undefined, takeover: "patient", tenant: undefined } as const;
    expect(() => openStore({ ...choice("redis"), engine }, () => "/h", io)).toThrow(
      "the store redis needs the address",
    );
    expect(openStore(choice("file"), () => "/h", io).location).toBe("/h");
    expect(openStore(choice("keyring"), () => "/h", io).location).toBe(
      "files under /h, to be sealed with a key in the OS keychain",
    );
  });

  it("writes nothing to the disk when it is memory", async () => {
    const folder = home();
    const store = openStore(choice("memory"), () => folder, createMemoryIo());
    await store.save(madeGrant(), undefined);
    expect(readdirSync(folder)).toEqual([]);
  });

  // Elsewhere there always is a keychain, which these tests leave alone.
  const onLinux = it.runIf(ON_LINUX);
  const env = { DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere" };

  onLinux("fails where it is the keyring and there is none", async () => {
    const folder = home();
    const io = createMemoryIo({ env });
    const saving = openStore(choice("keyring"), () => folder, io).save(madeGrant(), undefined);
    expect(await pendingError(saving)).toMatchObject({ code: "store_failed" });
    expect(grantFiles(folder)).toEqual([]);
    expect(io.err()).toBe("");
  });

  onLinux("warns once, and keeps files, where the settings say so", async () => {
    const folder = home();
    const io = createMemoryIo({ quiet: true, env });
    const store = openStore(choice("keyring", "file"), () => folder, io);
    await store.save(madeGrant(), undefined);
    await store.save(madeGrant({ generation: 2 }), 1);
    expect(io.err().match(/^warning: .*no keychain here.*stored unsealed.*$/gm)).toHaveLength(1);
    expect(io.err()).toContain(
      `; as store_fallback says, logins are stored unsealed in files under ${folder}, and sealed ones cannot be read\n`,
    );
    expect(readFileSync(grantFile(folder), "utf8")).toContain('"access-token-1"');
  });
});

const read = (text: string) => readKeys({ read: () => text, source: "AGENTAUTH_STORE_KEYS" }, "the store");
const KEY = "A".repeat(43);

describe("store_keys", () => {
  it("is needed by a store that seals, which says how to make a key ring", () => {
    expect(() => readKeys(undefined, "the store redis")).toThrow(
      expect.objectContaining({
        code: "usage",
        message: "the store redis needs a key ring, and store_keys is not set",
        hint: "make one with agentauth store keys <path>, then set AGENTAUTH_STORE_KEYS=file:<path>; none stores logins unsealed",
      }),
    );
  });

  it("may be none, and is what newKeys() makes, each time with other keys", () => {
    expect(read("none")).toBe("none");
    expect(read(newKeys())).not.toBe("none");
    expect(newKeys()).not.toBe(newKeys());
    const key = '"[\\w-]{43}"';
    expect(newKeys()).toMatch(
      new RegExp(`^{\n  "current": "k1",\n  "keys": {\n    "k1": ${key}\n  },\n  "name_key": ${key}\n}\n$`),
    );
  });

  it("hides the text and each key", () => {
    const hidden: string[] = [];
    const text = newKeys();
    readKeys({ read: () => text, source: "x" }, "the store", (secret) => hidden.push(secret));
    const { keys, name_key } = JSON.parse(text) as { keys: Record<string, string>; name_key: string };
    expect(hidden).toEqual([text, keys["k1"], name_key]);
  });

  it.each([
    ["{", "is not valid JSON"],
    [`{"current":"k1","current":"k1"}`, "is not valid JSON"],
    ["[]", "must be a JSON object"],
    [`{"nameKey":"${KEY}"}`, 'has an unknown member "nameKey"; known are current, keys, name_key'],
    [`{"keys":{"k1":"${KEY}"},"name_key":"${KEY}"}`, "has no current: the id of the key that seals"],
    [`{"current":"k1","name_key":"${KEY}"}`, "has no keys: an object with each key by its id"],
    [`{"current":"k1","keys":[],"name_key":"${KEY}"}`, "has no keys: an object with each key by its id"],
    [`{"current":"k1","keys":{"k1":"${KEY}","k2":7},"name_key":"${KEY}"}`, 'has a key "k2" that is not a string'],
    [`{"current":"k1","keys":{"k1":"${KEY}"}}`, "has no name_key"],
  ])("as %s is refused, with the command that makes one, and without a key", (text, problem) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({
        code: "usage",
        message: `store_keys (AGENTAUTH_STORE_KEYS) ${problem}`,
        hint: "agentauth store keys <path> makes a key ring",
      }),
    );
  });

  it.each([
    [{ current: "k2", keys: { k1: KEY }, name_key: KEY }, /^store_keys .*: .*current is "k2", and keys has no key of/],
    [
      { current: "k1", keys: { k1: KEY }, name_key: "short" },
      /^store_keys \(AGENTAUTH_STORE_KEYS\): (?!.*nameKey).*name_key/,
    ],
  ])("names what a key ring refuses: %j", (ring, message) => {
    expect(() => read(JSON.stringify(ring))).toThrow(
      expect.objectContaining({ code: "usage", message: expect.stringMatching(message), hint: expect.any(String) }),
    );
  });
});
