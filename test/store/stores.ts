import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { GrantStore } from "../../src/oauth/model/grant-store.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { fileStore } from "../../src/store/file/file.js";
import { keyringStore } from "../../src/store/keychain/keyring.js";
import { memoryStore } from "../../src/store/memory.js";
import { fakeKeychain } from "./keychain/keychains.js";
import { testEnvelope, testRing } from "./seal/support.js";

/** A folder that goes away with the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "agentauth-store-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Every store: what one of them promises all of them keep. */
export const stores: [string, () => GrantStore][] = [
  ["memoryStore", memoryStore],
  ...storesOfEngines(),
  ["fileStore", () => fileStore(folder())],
  ["keyringStore", () => keyringStore(folder(), { keychain: fakeKeychain() })],
  ["fileStore, opened anew each time", () => reopening(folder())],
];

/** Stores over a driver, whose engine has the clock. */
function storesOfEngines(): [string, () => GrantStore][] {
  return [
    ["grantStore, unsealed", () => grantStore(memoryDriver(), { seal: "none" })],
    ["grantStore, sealed with a key ring", () => grantStore(memoryDriver(), { seal: testRing() })],
    ["grantStore, sealed with an envelope", () => grantStore(memoryDriver(), { seal: testEnvelope().sealing })],
  ];
}

/** A store that keeps nothing in memory: what it gives back came from its files. */
function reopening(path: string): GrantStore {
  const store = () => fileStore(path);
  return {
    location: path,
    read: (key) => store().read(key),
    save: (grant, expected) => store().save(grant, expected),
    remove: (key) => store().remove(key),
    list: () => store().list(),
    connections: (query) => store().connections(query),
    readClient: (issuer, form) => store().readClient(issuer, form),
    saveClient: (client, form) => store().saveClient(client, form),
    readBinding: (key) => store().readBinding(key),
    saveBinding: (binding, expected) => store().saveBinding(binding, expected),
    removeBinding: (key) => store().removeBinding(key),
    listBindings: () => store().listBindings(),
    lease: (name, work, options) => store().lease(name, work, options),
    reserve: (key) => store().reserve(key),
    get unrevoked() {
      return store().unrevoked;
    },
    shortLived: {
      put: async (id, text, life) => (await store().shortLived?.put(id, text, life)) ?? false,
      take: async (id) => store().shortLived?.take(id),
      read: async (id) => store().shortLived?.read?.(id),
    },
  };
}
