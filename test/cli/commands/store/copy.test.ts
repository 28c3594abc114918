import { describe, expect, it } from "vitest";
import { copyStore } from "../../../../src/cli/commands/store/copy.js";
import type { Grant } from "../../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../../src/oauth/model/grant-store.js";
import { Secret } from "../../../../src/redact.js";
import { memoryStore } from "../../../../src/store/memory.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { madeClient, madeGrant } from "../../../helpers/grant.js";

const FORM = "http://127.0.0.1/callback";
const GRANT = madeGrant({ profile: "work", account: "ann", generation: 2 });
const BINDING = {
  profile: "work",
  clientId: "my-service",
  issuer: "https://as.example/pool",
  boundBy: "issuer",
  boundAt: 1_700_000_000_000,
} as const;

/** A store with some logins, clients and bindings. */
async function storeWith({ grants = [GRANT], clients = [madeClient()], bindings = [BINDING] }) {
  const store = memoryStore();
  for (const grant of grants) await store.save(grant, undefined);
  for (const binding of bindings) await store.saveBinding(binding, undefined);
  return Object.assign(store, { listClients: async () => clients });
}

const copy = (from: GrantStore, to: object) => copyStore(from, to as GrantStore, () => {});
const otherTokens = () => ({ ...GRANT.tokens, accessToken: new Secret("access-token-2") });

describe("what store copy does with a record that the engine has", () => {
  it.each<[string, Partial<Grant>, string]>([
    ["the same login", {}, "unchanged"],
    ["the same login, refreshed", { generation: 3 }, "unchanged"],
    ["the same login before", { generation: 1 }, "copied"],
    ["another one of the same time and generation", { tokens: otherTokens() }, "newer"],
    ["another one of the same time, later", { tokens: otherTokens(), generation: 3 }, "newer"],
    ["another one of the same time, earlier", { tokens: otherTokens(), generation: 1 }, "copied"],
    ["a later one", { signedInAt: GRANT.signedInAt + 1, generation: 1 }, "newer"],
    ["an earlier one", { signedInAt: GRANT.signedInAt - 1, generation: 9 }, "copied"],
  ])("finds %s", async (_what, over, outcome) => {
    const to = await storeWith({ grants: [{ ...GRANT, ...over }], clients: [], bindings: [] });
    const before = await to.read(GRANT);
    const { logins, unchanged, skipped_records } = await copy(await storeWith({ clients: [], bindings: [] }), to);
    expect([logins, unchanged, skipped_records.length]).toEqual(
      ["copied", "unchanged", "newer"].map((one) => Number(one === outcome)),
    );
    const after = await to.read(GRANT);
    if (outcome !== "copied") return expect(after).toEqual(before);
    expect(after?.tokens.accessToken.reveal()).toBe(GRANT.tokens.accessToken.reveal());
    // A generation is never used twice.
    expect(after?.generation).toBeGreaterThan(before?.generation ?? 0);
  });

  it.each<[string, number[] | undefined, number[] | undefined, number]>([
    ["registered later", [2], [1], 0],
    ["registered at the same time", [1], [1], 0],
    ["of an unknown time, as the other", undefined, undefined, 0],
    ["registered earlier", [1], [1, 2], 1],
  ])("finds another client that was %s", async (_what, there, copied, clients) => {
    const clientOf = (clientId: string, times?: number[]) =>
      madeClient({ clientId, ...(times && { registeredAt: times }) });
    const from = await storeWith({ grants: [], clients: [clientOf("copied", copied)], bindings: [] });
    const to = memoryStore();
    await to.saveClient(clientOf("there", there), FORM);
    expect(await copy(from, to)).toMatchObject({ clients, skipped_records: { length: 1 - clients } });
    expect((await to.readClient(madeClient().issuer, FORM))?.clientId).toBe(clients === 0 ? "there" : "copied");
  });

  it("replaces no binding, and leaves out a client without a redirect address", async () => {
    const to = await storeWith({ grants: [], bindings: [{ ...BINDING, issuer: "https://another.example" as never }] });
    const from = await storeWith({ grants: [], clients: [madeClient({ redirectUri: undefined })] });
    const { skipped_records, bindings, clients } = await copy(from, to);
    expect({ bindings, clients }).toEqual({ bindings: 0, clients: 0 });
    expect(skipped_records).toEqual([
      { record: 'binding of "my-service"', reason: 'it is bound to "https://another.example"' },
      { record: 'client "client-1"', reason: "it has no redirect address" },
    ]);
  });

  it("tries again five times where other processes change a login, with what it has by then", async () => {
    const saved: unknown[] = [];
    const busy = {
      location: "an engine",
      read: async () => (saved.length === 0 ? undefined : { ...GRANT, signedInAt: 1, generation: 6 + saved.length }),
      save: async (grant: Grant, before: number | undefined) => {
        saved.push([grant.generation, before]);
        return false;
      },
    };
    const from = await storeWith({ clients: [], bindings: [] });
    await expect(copy(from, busy)).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
    expect(saved).toEqual([
      [2, undefined],
      [8, 7],
      [9, 8],
      [10, 9],
      [11, 10],
    ]);
  });
});

describe("store copy", () => {
  const run = (args: string[], env: Record<string, string> = {}) =>
    runCli(["store", "copy", ...args], { env: { AGENTAUTH_HOME: temporaryFolder(), ...env } });

  it.each<[string, string[], Record<string, string>, RegExp]>([
    ["no target", [], {}, /needs --to/],
    ["an address that is none", ["--to", "nowhere"], {}, /--to is no address of Redis or PostgreSQL/],
    ["another scheme", ["--to", "mysql://db/1"], {}, /--to is no address of Redis or PostgreSQL/],
    ["no key ring", ["--to", "redis://127.0.0.1:1"], {}, /store_keys is not set/],
    ["a store in memory", ["--to", "redis://127.0.0.1:1"], { AGENTAUTH_STORE: "memory" }, /the store is memory/],
    ["an engine", ["--to", "redis://127.0.0.1:1"], { AGENTAUTH_STORE: "redis" }, /the store is redis/],
  ])("refuses %s", async (_what, args, env, reason) => {
    const { code, stdout, stderr } = await run(args, env);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(reason);
  });

  it.each([
    "redis://:hunter2@127.0.0.1:1/0",
    "postgres://u:hunter2@127.0.0.1:1/db",
    "postgres://127.0.0.1:1/db?password=hunter2",
    "POSTGRES://u:h%75nter2@127.0.0.1:1/db",
  ])("refuses the password in %s, and never prints it", async (address) => {
    const { code, stdout, stderr } = await run(["--to", address, "--debug"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("env:NAME");
    expect(stderr).not.toMatch(/h(u|%75)nter2/);
  });
});
