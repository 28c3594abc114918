import { dirname, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { fileStore } from "../../../src/store/file/file.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { onSystem } from "../../platform/support.js";
import { folder } from "../stores.js";
import { KEY, storeWithGrant } from "./support.js";

const FORM = "http://127.0.0.1/callback";

/** Called before each call to the file system; what it throws, the call throws. */
const spy = vi.hoisted(() => ({ before: (_name: string, _args: readonly unknown[]): void => undefined }));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const names = Object.keys(real).filter((name) => name.endsWith("Sync"));
  const wrapped = names.map((name) => {
    const call = (...args: unknown[]): unknown => {
      spy.before(name, args);
      return (real as unknown as Record<string, (...args: unknown[]) => unknown>)[name]?.(...args);
    };
    return [name, call] as const;
  });
  return { ...real, ...Object.fromEntries(wrapped) };
});

function failure(name: string, code: string): Error {
  return Object.assign(new Error("injected"), { code, syscall: name.replace("Sync", "") });
}

/** Lets calls fail while the work runs. */
async function withFaults<T>(faults: (name: string, args: readonly unknown[]) => string | undefined, work: () => T) {
  spy.before = (name, args) => {
    const code = faults(name, args);
    if (code !== undefined) throw failure(name, code);
  };
  try {
    return await work();
  } finally {
    spy.before = () => undefined;
  }
}

describe("Windows, where a virus scanner opens every new file", () => {
  const CALLS = ["openSync", "linkSync", "renameSync", "rmSync", "readdirSync"];

  /** Every call on a path fails twice before it succeeds. */
  function scanner() {
    const seen = new Map<string, number>();
    const codes = ["EBUSY", "EPERM", "EACCES"];
    let failures = 0;
    return (name: string, [path]: readonly unknown[]) => {
      if (!CALLS.includes(name)) return undefined;
      const count = seen.get(`${name} ${path}`) ?? 0;
      seen.set(`${name} ${path}`, count + 1);
      return count < 2 ? codes[failures++ % codes.length] : undefined;
    };
  }

  it("stores, refreshes, leases and removes all the same", async () => {
    onSystem({ name: "win32" });
    const store = fileStore(folder());
    await withFaults(scanner(), async () => {
      expect(await store.save(madeGrant(), undefined)).toBe(true);
      expect(await store.save(madeGrant({ generation: 2 }), 1)).toBe(true);
      await store.saveClient(madeClient(), FORM);
      expect(await store.lease("x", async (lease) => lease.commit().then(() => "done"), { durationMs: 60_000 })).toBe(
        "done",
      );
      expect((await store.read(KEY))?.generation).toBe(2);
      await store.remove(KEY);
      expect(await store.read(KEY)).toBeUndefined();
    });
  });

  it("says who may have the file, and nothing of hard links, where that does not end", async () => {
    onSystem({ name: "win32" });
    const { store } = await storeWithGrant();
    const blocked = (name: string) => (name === "linkSync" ? "EPERM" : undefined);
    await expect(withFaults(blocked, () => store.save(madeGrant({ generation: 2 }), 1))).rejects.toMatchObject({
      code: "store_failed",
      hint: expect.stringContaining("virus scanner"),
    });
    expect((await store.read(KEY))?.generation).toBe(1);
  });
});

describe("what was saved", () => {
  it.each([
    ["the temporary file cannot be removed", "rmSync", "EBUSY", /\.tmp$/],
    ["the generation before it cannot be removed", "rmSync", "EBUSY", /1\.json$/],
    ["the folder cannot be flushed", "fsyncSync", "EIO", undefined],
    ["the folder cannot be listed", "readdirSync", "EIO", undefined],
  ])("is not reported as failed where %s", async (_what, call, code, path) => {
    const { store } = await storeWithGrant();
    let isLinked = false;
    const faults = (name: string, [first]: readonly unknown[]) => {
      const fails = isLinked && name === call && (path === undefined || path.test(String(first)));
      isLinked ||= name === "linkSync";
      return fails ? code : undefined;
    };
    expect(await withFaults(faults, () => store.save(madeGrant({ generation: 2 }), 1))).toBe(true);
    expect(isLinked).toBe(true);
    expect((await store.read(KEY))?.generation).toBe(2);
    expect(await store.save(madeGrant({ generation: 3 }), 2)).toBe(true);
  });

  it("is not reported as failed where a client's folder cannot be flushed", async () => {
    const { store } = await storeWithGrant();
    let isNamed = false;
    const faults = (name: string) => {
      isNamed ||= name === "renameSync";
      return isNamed && name === "fsyncSync" ? "EIO" : undefined;
    };
    await withFaults(faults, () => store.saveClient(madeClient(), FORM));
    expect(isNamed).toBe(true);
  });
});

describe("a file system that cannot flush a folder", () => {
  it.each(["EINVAL", "ENOTSUP", "EPERM", "EISDIR", "ENOSYS"])("stores and removes all the same: %s", async (code) => {
    const store = fileStore(folder());
    const { fstatSync } = await vi.importActual<typeof import("node:fs")>("node:fs");
    let refused = 0;
    const faults = (name: string, [fd]: readonly unknown[]) => {
      if (name !== "fsyncSync" || !fstatSync(Number(fd)).isDirectory()) return undefined;
      refused++;
      return code;
    };
    await withFaults(faults, async () => {
      expect(await store.save(madeGrant(), undefined)).toBe(true);
      expect(await store.save(madeGrant({ generation: 2 }), 1)).toBe(true);
      await store.remove(KEY);
    });
    expect(refused).toBeGreaterThan(2);
  });
});

describe("a folder that is made on Windows", () => {
  it("is for its user alone, by one list of access that is inherited", async () => {
    const run = vi.fn((program: string) => (program === "whoami" ? '"pc\\\\a","S-1-5-21-1-2-3-1001"\r\n' : ""));
    onSystem({ name: "win32", run });
    const home = join(folder(), "a", "b");
    await fileStore(home).saveClient(madeClient(), FORM);
    const made = run.mock.calls.filter(([program]) => program === "icacls");
    expect(made).toEqual([["icacls", [dirname(home), "/inheritance:r", "/grant:r", "*S-1-5-21-1-2-3-1001:(OI)(CI)F"]]]);
  });

  it("is made all the same where its user is not known", async () => {
    onSystem({ name: "win32", run: () => undefined });
    await expect(fileStore(folder()).saveClient(madeClient(), FORM)).resolves.toBeUndefined();
  });
});

describe("a file system without hard links", () => {
  it.each(["EPERM", "ENOTSUP", "EISDIR"])("is named as the reason: %s", async (code) => {
    const store = fileStore(folder());
    const faults = (name: string) => (name === "linkSync" ? code : undefined);
    await expect(withFaults(faults, () => store.save(madeGrant(), undefined))).rejects.toMatchObject({
      hint: expect.stringContaining("hard links"),
    });
  });
});
