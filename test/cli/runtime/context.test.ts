import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { canPrompt, createPendingSaves, mayLogin, once } from "../../../src/cli/runtime/context.js";
import { AgentAuthError } from "../../../src/errors.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import type { Lease } from "../../../src/oauth/model/lease.js";
import { fileStore } from "../../../src/store/file/file.js";
import { memoryStore } from "../../../src/store/memory.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { madeGrant } from "../../helpers/grant.js";
import { startRun } from "../run-support.js";

describe("the context of a command", () => {
  it("reads its settings once, and again for another environment or other flags", () => {
    const { context } = startRun();
    const settings = context.settings();
    const { io } = context;
    expect(context.settings()).toBe(settings);
    expect(context.with({}).settings()).toBe(settings);
    expect(context.with({ io: { ...io }, argv: ["x"] }).settings()).toBe(settings);
    const env = { ...io.env, AGENTAUTH_BASE_URL: "https://env.example" };
    expect(context.with({ io: { ...io, env } }).settings().baseUrl?.value).toBe("https://env.example");
    const flags = { baseUrl: "https://flag.example" };
    expect(context.with({ flags }).settings().baseUrl).toEqual({ value: "https://flag.example", source: "--base-url" });
    const decided = { ...settings, pool: { value: "p", source: "decided" } };
    expect(context.with({ settings: decided, flags }).settings()).toBe(decided);
  });

  it("keeps its flags and the rest of the run where these are not changed", () => {
    const { context } = startRun({}, { login: true });
    const other = context.with({ argv: ["x"] });
    expect([other.mayLogin(), other.argv, other.io, other.redactor]).toEqual([
      true,
      ["x"],
      context.io,
      context.redactor,
    ]);
    expect(context.with({ flags: { login: false } }).mayLogin()).toBe(false);
  });

  it("has the folder, the store and the audit file that are chosen", async () => {
    const home = temporaryFolder();
    const { context } = startRun({ env: { AGENTAUTH_HOME: home, AGENTAUTH_STORE: "memory" } });
    expect([context.home(), context.storeChoice().value, context.audit()]).toEqual([home, "memory", undefined]);
    expect(await context.store()).toBe(await context.store());
    const audited = startRun({ env: { AGENTAUTH_AUDIT: `file:${join(home, "audit")}` } }).context;
    const write = audited.audit();
    expect([typeof write, audited.audit()]).toEqual(["function", write]);
    const lost = startRun({ env: { AGENTAUTH_AUDIT: `file:${join(home, "missing", "audit")}` } });
    const writeLost = lost.context.audit();
    rmSync(join(home, "missing"), { recursive: true });
    writeLost?.({ type: "store", outcome: "failed" } as never);
    expect(lost.io.err()).toContain("warning: ");
  });

  it("has no client for a service that is not configured", async () => {
    await expect(startRun().context.management()).rejects.toMatchObject({ code: "usage" });
  });
});

describe("whether the user may be asked", () => {
  it.each([
    [{}, {}, true],
    [{ input: true }, {}, true],
    [{ input: false }, {}, false],
    [{}, { AGENTAUTH_NO_INPUT: "1" }, false],
    [{}, { AGENTAUTH_NO_INPUT: "" }, true],
  ])("with %j and %j: %s", (flags, env, expected) => {
    expect(canPrompt(flags, { env })).toBe(expected);
  });

  const terminal = (stdin: boolean, stderr: boolean) => startRun({ tty: { stdin, stderr } }).context;
  it.each<[Parameters<typeof mayLogin>[0], boolean, boolean, Parameters<typeof mayLogin>[2], boolean]>([
    [{}, true, true, undefined, true],
    [{}, true, false, undefined, false],
    [{}, false, true, undefined, false],
    [{}, true, true, "never", false],
    [{}, false, false, "always", true],
    [{ grant: "jwt-bearer" }, true, true, "always", false],
    [{ login: false }, true, true, undefined, false],
    [{ login: false }, true, true, "always", true],
    [{ login: true }, false, false, undefined, true],
    [{ login: true, input: false }, true, true, undefined, false],
    [{ browser: "x" }, false, false, undefined, true],
    [{ browser: "none" }, false, false, undefined, false],
    [{ browser: "none" }, true, true, undefined, true],
  ])("to log in, with %j at %s and %s (%s): %s", (flags, stdin, stderr, when, expected) => {
    expect(mayLogin(flags, terminal(stdin, stderr), when)).toBe(expected);
  });
});

it("a value is built once, also one that is undefined", () => {
  let built = 0;
  const value = once(() => {
    built++;
  });
  expect([value(), value(), built]).toEqual([undefined, undefined, 1]);
});

const stores: [string, () => GrantStore][] = [
  ["memory", () => memoryStore()],
  ["file", () => fileStore(temporaryFolder())],
];

/** Something to be ended by hand. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

it.each(stores)("a refresh is under way from the commit of its lease until its work has ended: %s", async (_, open) => {
  const saves = createPendingSaves();
  const store = saves.watch(open());
  const [before, after] = [gate(), gate()];
  const committed = gate();
  const work = async (lease: Lease) => {
    await before.opened;
    await lease.commit();
    committed.open();
    await after.opened;
    return saves.isUnderWay();
  };
  const result = store.lease("one", work, { durationMs: 60_000 });
  expect(saves.isUnderWay()).toBe(false);
  before.open();
  await committed.opened;
  expect(saves.isUnderWay()).toBe(true);
  const settled = saves.settled().then(() => saves.isUnderWay());
  after.open();
  expect([await result, await settled, saves.isUnderWay()]).toEqual([true, false, false]);
});

it("work that fails has ended too, and its error is passed on", async () => {
  const saves = createPendingSaves();
  const store = saves.watch(memoryStore());
  const work = async (lease: Lease) => {
    await lease.commit();
    throw new Error("the issuer is away");
  };
  await expect(store.lease("one", work, { durationMs: 60_000 })).rejects.toThrow("the issuer is away");
  expect(saves.isUnderWay()).toBe(false);
  await saves.settled();
});

it.each([
  ["the store has saved it", true],
  ["half a minute has passed", false],
])("what the store saves in the background is under way until %s", async (_, isSaved) => {
  const sleeping: { ms: number; wake: () => void; signal: AbortSignal }[] = [];
  const sleep = (ms: number, signal: AbortSignal) =>
    new Promise<void>((wake) => void sleeping.push({ ms, wake, signal }));
  const saves = createPendingSaves({ sleep });
  const saved = gate();
  const lease: GrantStore["lease"] = async (_name, _work, { onUnsaved }) => {
    onUnsaved?.(saved.opened);
    throw new Error("not saved");
  };
  const seen: unknown[] = [];
  const options = { durationMs: 60_000, onUnsaved: (ended: Promise<void>) => seen.push(ended) };
  const failing = saves.watch({ ...memoryStore(), lease }).lease("one", async () => undefined, options);
  await expect(failing).rejects.toThrow("not saved");
  expect([saves.isUnderWay(), seen]).toEqual([true, [saved.opened]]);
  if (isSaved) saved.open();
  else sleeping[0]?.wake();
  await saves.settled();
  expect(saves.isUnderWay()).toBe(false);
  expect([sleeping[0]?.ms, sleeping[0]?.signal.aborted]).toEqual([30_000, true]);
});

it("of two, the last one counts", async () => {
  const saves = createPendingSaves();
  const gates = [gate(), gate()];
  const committed = [gate(), gate()];
  const begun = gates.map(({ opened }, nth) =>
    saves.watch(memoryStore()).lease(
      `${nth}`,
      async (lease) => {
        await lease.commit();
        committed[nth]?.open();
        await opened;
      },
      { durationMs: 60_000 },
    ),
  );
  await Promise.all(committed.map(({ opened }) => opened));
  const settled = saves.settled().then(() => saves.isUnderWay());
  gates[0]?.open();
  await begun[0];
  expect(saves.isUnderWay()).toBe(true);
  gates[1]?.open();
  expect(await settled).toBe(false);
});

it("work that sends nothing that must not happen twice may be interrupted", async () => {
  const saves = createPendingSaves();
  const work = async () => saves.isUnderWay();
  expect(await saves.watch(memoryStore()).lease("sign-in", work, { durationMs: 60_000 })).toBe(false);
});

it.each(stores)("what the lease says of itself is what the store's own says: %s", async (_, open) => {
  const store = open();
  const watched = createPendingSaves().watch(store);
  const failing = watched.lease("one", async () => Promise.reject(new Error("no")), { durationMs: 60_000 });
  await expect(failing).rejects.toThrow("no");
  const seen = await watched.lease(
    "one",
    async (lease) => {
      lease.rollback();
      return { left: lease.left() > 0, waited: lease.waited };
    },
    { durationMs: 60_000 },
  );
  expect(seen).toEqual({ left: true, waited: false });
  const before = (lease: Lease) => Promise.resolve(lease.previous?.ended);
  const options = { durationMs: 60_000 };
  expect(await watched.lease("one", before, options)).toBe(await store.lease("one", before, options));
});

it("what else is given to the store gets there", async () => {
  const seen: unknown[] = [];
  const store: GrantStore = {
    ...memoryStore(),
    async list(filter, onUnusable) {
      seen.push(filter);
      onUnusable?.(new AgentAuthError("store_failed", "it is broken", { class: "store" }));
      return [];
    },
  };
  await createPendingSaves()
    .watch(store)
    .list({ profile: "p" }, (error) => seen.push(error.message));
  expect(seen).toEqual([{ profile: "p" }, "it is broken"]);
});

it.each(stores)("everything else is the store's own: %s", async (_, open) => {
  const store = open();
  const watched = createPendingSaves().watch(store);
  const grant = madeGrant({ generation: 1 });
  expect(watched.location).toBe(store.location);
  expect(await watched.save(grant, undefined)).toBe(true);
  expect((await watched.read(grant))?.generation).toBe(1);
  expect((await store.list()).length).toBe((await watched.list()).length);
  const room = await watched.reserve(grant);
  expect(await room.save({ ...grant, generation: 2 }, 1)).toBe(true);
  await room.release();
  await watched.saveClient(grant.client, "form");
  expect((await watched.readClient(grant.client.issuer, "form"))?.clientId).toBe(grant.client.clientId);
  await watched.remove(grant);
  expect(await store.list()).toEqual([]);
});

it("a watched store has the logins that wait for their callback, and the lease what decides about sending", async () => {
  const store = memoryStore();
  const { lease: given } = store;
  const late = new AgentAuthError("lease_lost", "late", { class: "unavailable" });
  const lease: GrantStore["lease"] = (name, work, options) =>
    given(name, (held) => work({ ...held, maySend: () => false, lost: () => late }), options);
  const watched = createPendingSaves().watch({ ...store, lease });
  expect(watched.shortLived).toBe(store.shortLived);
  const found = await watched.lease("one", async (held) => [held.maySend?.(), held.lost?.()], { durationMs: 60_000 });
  expect(found).toEqual([false, late]);
});

it("a watched lease knows and records which refresh tokens are used up, and a watched store says how it is", async () => {
  const store = memoryStore();
  const { lease: given } = store;
  let spends = 0;
  const spend = () => void spends++;
  const lease: GrantStore["lease"] = (name, work, options) =>
    given(name, (held) => work({ ...held, markRotated: spend, rotatedGeneration: 3 }), options);
  const health = async () => ({ errors: [], risks: ["it evicts"] });
  const watched = createPendingSaves().watch({ ...store, lease, health });
  const spent = await watched.lease(
    "one",
    async (held) => {
      held.markRotated?.();
      return held.rotatedGeneration;
    },
    { durationMs: 60_000 },
  );
  expect([spent, spends, (await watched.health?.())?.risks]).toEqual([3, 1, ["it evicts"]]);
});
