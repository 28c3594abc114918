import { utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ConnectionPage } from "../../../src/oauth/model/connection.js";
import { fileStore } from "../../../src/store/file/file.js";
import { madeGrant } from "../../helpers/grant.js";
import { folder } from "../stores.js";
import { KEY } from "./support.js";

/** Called before each call of the store to the file system; what it throws, the call throws. */
const spy = vi.hoisted(() => ({
  before: (_name: string, _args: readonly unknown[]): void => undefined,
  /** The order in which folders are listed, which a system may choose. */
  order: (names: string[]): string[] => names,
}));

vi.mock("node:fs", async (original) => {
  const { spiedFs } = await import("../../helpers/spied-fs.js");
  const real = await original<typeof import("node:fs")>();
  const readdirSync = (...args: [string]) => spy.order(real.readdirSync(...args));
  return spiedFs({ ...real, readdirSync } as typeof real, (name, args) => spy.before(name, args));
});

/** Runs work again and again, on a new folder, and has the process end before its first call, its second, … */
async function endBeforeEach<T>(
  arrange: () => Promise<T>,
  work: (on: T) => Promise<unknown>,
  check: (on: T) => unknown,
) {
  for (let nth = 0; ; nth++) {
    const on = await arrange();
    let calls = 0;
    spy.before = () => {
      if (calls++ >= nth) throw Object.assign(new Error("the process has ended"), { code: "EIO", syscall: "any" });
    };
    const outcome = await work(on).catch((error: unknown) => error);
    spy.before = () => undefined;
    await check(on);
    // What fails after the record is saved is not reported.
    if (!(outcome instanceof Error) && calls <= nth) return nth;
  }
}

describe("a process that ends at any system call", () => {
  const arrange = async () => {
    const home = folder();
    await fileStore(home).save(madeGrant(), undefined);
    return { home, reservation: await fileStore(home).reserve(KEY) };
  };

  it.each([
    ["a refresh", madeGrant({ generation: 2 })],
    ["a login", madeGrant({ generation: 2, signedInAt: madeGrant().signedInAt + 1000 })],
  ])("while it saves %s leaves one grant, the old or the new one, that can be saved over", async (_what, grant) => {
    const ends = await endBeforeEach(
      arrange,
      ({ reservation }) => reservation.save(grant, 1),
      async ({ home }) => {
        const stored = await fileStore(home).read(KEY);
        expect([1, 2]).toContain(stored?.generation);
        expect(await fileStore(home).list()).toHaveLength(1);
        const next = madeGrant({ generation: (stored?.generation ?? 0) + 1 });
        expect(await fileStore(home).save(next, stored?.generation)).toBe(true);
        expect(await fileStore(home).list()).toEqual([next]);
      },
    );
    expect(ends).toBeGreaterThan(20);
  });

  it("while it saves the first grant leaves none or that one", async () => {
    const ends = await endBeforeEach(
      async () => folder(),
      (home) => fileStore(home).save(madeGrant(), undefined),
      async (home) => {
        const stored = await fileStore(home).read(KEY);
        expect(await fileStore(home).list()).toHaveLength(stored === undefined ? 0 : 1);
        expect(await fileStore(home).save(madeGrant({ generation: 2 }), stored?.generation)).toBe(true);
      },
    );
    expect(ends).toBeGreaterThan(20);
  });

  it("while it removes a grant leaves one that can be removed", async () => {
    const ends = await endBeforeEach(
      async () => {
        const home = folder();
        await fileStore(home).save(madeGrant(), undefined);
        return home;
      },
      (home) => fileStore(home).remove(KEY),
      async (home) => {
        await fileStore(home).remove(KEY);
        expect(await fileStore(home).list()).toEqual([]);
      },
    );
    expect(ends).toBeGreaterThan(3);
  });
});

describe("the system calls of a read", () => {
  /** The calls and the names in folders that work gets to see. */
  async function effort(work: () => Promise<unknown>) {
    const made = { calls: 0, folders: [] as string[] };
    spy.before = (name, args) => {
      made.calls++;
      if (name === "readdirSync") made.folders.push(String(args[0]));
    };
    await work();
    spy.before = () => undefined;
    return made;
  }

  it("are as many whatever else is stored, and list no folder of others", async () => {
    const home = folder();
    const store = fileStore(home);
    const unknown = { ...KEY, profile: "unknown" };
    const ours = { profile: KEY.profile, server: KEY.server };
    await store.save(madeGrant(), undefined);
    const works = [() => store.read(KEY), () => store.read(unknown), () => store.list(unknown), () => store.list(ours)];
    const alone = [];
    for (const work of works) alone.push(await effort(work));
    for (let nth = 0; nth < 30; nth++) {
      await store.save(madeGrant({ profile: `user-${nth}` }), undefined);
      await store.save(madeGrant({ server: `https://mcp${nth}.example/mcp` }), undefined);
    }
    for (const [nth, work] of works.entries()) expect(await effort(work)).toEqual(alone[nth]);
    for (let nth = 0; nth < 30; nth++) await store.save(madeGrant({ account: `user-${nth}` }), undefined);
    for (const [nth, work] of works.slice(0, 3).entries()) expect(await effort(work)).toEqual(alone[nth]);
  });

  it("are linear in a list", async () => {
    const home = folder();
    const store = fileStore(home);
    const made = [];
    for (let nth = 0; nth < 3; nth++) {
      for (let more = 0; more < 20; more++) await store.save(madeGrant({ profile: `user-${nth}-${more}` }), undefined);
      made.push((await effort(() => store.list())).calls);
    }
    const [one = 0, two = 0, three = 0] = made;
    expect(three - two).toBe(two - one);
  });
});

it("pages of connections have each login of a server once, whatever the order of its folder", async () => {
  const store = fileStore(folder());
  spy.order = (names) => names.reverse();
  onTestFinished(() => {
    spy.order = (names) => names;
  });
  const accounts = Array.from({ length: 12 }, (_, nth) => `user-${nth}`);
  for (const account of accounts) await store.save(madeGrant({ account }), undefined);
  const found: unknown[] = [];
  let cursor: string | undefined;
  do {
    const pages = store.connections({ limit: 1, cursor })[Symbol.asyncIterator]();
    const { value } = (await pages.next()) as { value: ConnectionPage };
    found.push(...value.items.map(({ account }) => account));
    ({ cursor } = value);
  } while (cursor !== undefined);
  expect(found.sort()).toEqual(accounts.sort());
});

it("a store of 120 users opens the files of one alone, gives other work its turn, and lists its folder once for many pages", async () => {
  const home = folder();
  const store = fileStore(home);
  for (let nth = 0; nth < 120; nth++) await store.save(madeGrant({ profile: `user-${nth}` }), undefined);
  // Changed long ago.
  utimesSync(join(home, "grants"), 0, 0);
  const calls: string[] = [];
  spy.before = (name, [path]) => void calls.push(`${name} ${String(path)}`);
  onTestFinished(() => {
    spy.before = () => undefined;
  });
  expect(await store.list({ profile: "user-7" })).toHaveLength(1);
  for await (const { items } of store.connections({ profile: "user-8" })) expect(items).toHaveLength(1);
  expect(calls.filter((call) => /^openSync .*[/]1[.]json$/.test(call))).toHaveLength(2);
  let turns = 0;
  setImmediate(() => turns++);
  expect(await store.list()).toHaveLength(120);
  expect(turns).toBe(1);
  let cursor: string | undefined;
  for (let page = 0; page < 6; page++)
    for await (const found of store.connections({ limit: 10, cursor })) {
      ({ cursor } = found);
      break;
    }
  expect(calls.filter((call) => call === `readdirSync ${join(home, "grants")}`)).toHaveLength(1);
  // What is stored from here on is found.
  await store.save(madeGrant({ profile: "new" }), undefined);
  expect(await store.list({ profile: "new" })).toHaveLength(1);
});

it("a folder that another process removes is made again for the file that is reserved in it", async () => {
  const home = folder();
  const store = fileStore(home);
  const { rmdirSync } = await vi.importActual<typeof import("node:fs")>("node:fs");
  let removed = 0;
  spy.before = (name, [path]) => {
    if (name !== "openSync" || !String(path).endsWith(".tmp") || removed++ > 2) return;
    rmdirSync(String(path).replace(/\/[^/]*$/, ""));
  };
  expect(await store.save(madeGrant(), undefined)).toBe(true);
  spy.before = () => undefined;
  expect(removed).toBe(5);
  expect(await store.read(KEY)).toBeDefined();
});
