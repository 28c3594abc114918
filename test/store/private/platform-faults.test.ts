import { cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Subject } from "../../../src/cli/commands/doctor/check.js";
import { STORE_CHECKS } from "../../../src/cli/commands/doctor/store-checks.js";
import type { Lease } from "../../../src/oauth/model/lease.js";
import { fileStore } from "../../../src/store/file/file.js";
import { discardFile } from "../../../src/store/private/private-file.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { grantFiles } from "../../helpers/grant-files.js";
import { onSystem } from "../../platform/support.js";
import { KEY, storeWithGrant } from "../file/support.js";
import { folder } from "../stores.js";

const FORM = "http://127.0.0.1/callback";

/** Called before each call to the file system; what it throws, the call throws. */
const spy = vi.hoisted(() => ({ before: (_name: string, _args: readonly unknown[]): void => undefined }));

vi.mock("node:fs", async (original) => {
  const { spiedFs } = await import("../../helpers/spied-fs.js");
  return spiedFs(await original(), (name, args) => spy.before(name, args));
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
    expect(await pendingError(withFaults(blocked, () => store.save(madeGrant({ generation: 2 }), 1)))).toMatchObject({
      code: "store_failed",
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

it("a removal that cannot be flushed is reported as failed: the login may be there again after a crash", async () => {
  const { store } = await storeWithGrant();
  const faults = (name: string) => (name === "fsyncSync" ? "EIO" : undefined);
  await expect(withFaults(faults, () => store.remove(KEY))).rejects.toMatchObject({ code: "store_failed" });
  expect(await store.read(KEY)).toBeUndefined();
});

it.each(["EINVAL", "ENOTSUP", "EOPNOTSUPP", "EPERM", "EISDIR", "ENOSYS"])(
  "a file system that cannot flush a folder stores and removes all the same: %s",
  async (code) => {
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
  },
);

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

it("a short-lived record that cannot be renamed is not taken, and stays", async () => {
  const { shortLived } = fileStore(folder());
  await shortLived?.put("a", "text", { now: 0, expiresAt: Date.now() + 60_000 });
  const blocked = (name: string) => (name === "renameSync" ? "EIO" : undefined);
  const taken = withFaults(blocked, async () => shortLived?.take("a"));
  expect(await pendingError(taken)).toMatchObject({ code: "store_failed", class: "store" });
  expect(await shortLived?.take("a")).toBe("text");
});

it("a record that is removed while it is read is none, also where it was published as a folder", async () => {
  const { rmSync } = await vi.importActual<typeof import("node:fs")>("node:fs");
  const { shortLived } = fileStore(folder());
  const noLinks = (name: string) => (name === "linkSync" ? "EPERM" : undefined);
  await withFaults(noLinks, async () => shortLived?.put("a", "text", { now: 0, expiresAt: Date.now() + 60_000 }));
  expect(await shortLived?.read?.("a")).toBe("text");
  const removing = (name: string, [path]: readonly unknown[]) => {
    if (name === "openSync" && basename(String(path)) === "content") rmSync(dirname(String(path)), { recursive: true });
    return undefined;
  };
  expect(await withFaults(removing, async () => shortLived?.read?.("a"))).toBeUndefined();
});

describe("a file system without hard links", () => {
  const CODES = ["EPERM", "EACCES", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EISDIR"];
  const noLinks = (code: string | undefined) => (name: string) => (name === "linkSync" ? code : undefined);

  it.each(CODES)("stores, refreshes, leases and removes all the same: %s", async (code) => {
    const home = folder();
    const store = fileStore(home);
    await withFaults(noLinks(code), async () => {
      expect(await store.save(madeGrant(), undefined)).toBe(true);
      for (let generation = 2; generation < 6; generation++) {
        const commit = (lease: Lease) => lease.commit().then(() => "done");
        expect(await store.lease("x", commit, { durationMs: 60_000 })).toBe("done");
        expect(await store.save(madeGrant({ generation }), generation - 1)).toBe(true);
        expect(await store.save(madeGrant({ generation }), generation - 1)).toBe(false);
        expect((await store.read(KEY))?.generation).toBe(generation);
      }
      expect(await store.list()).toHaveLength(1);
      expect(await store.shortLived?.put("a", "text", { now: 0, expiresAt: Date.now() + 60_000 })).toBe(true);
      expect(await store.shortLived?.put("a", "other", { now: 0, expiresAt: Date.now() + 60_000 })).toBe(false);
      expect(await store.shortLived?.take("a")).toBe("text");
      expect(await store.shortLived?.take("a")).toBeUndefined();
      const subject = { home: { value: home }, store: { value: "file" } } as Subject;
      expect(STORE_CHECKS.files(subject)).toMatchObject({ state: "ok", found: "1 file, all can be used" });
      await store.remove(KEY);
      expect(await store.read(KEY)).toBeUndefined();
    });
    expect(readdirSync(home, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tmp"))).toEqual(
      [],
    );
    expect(grantFiles(home)).toEqual([]);
  });

  it.each([
    ["by a link", "linkSync", undefined],
    ["by a folder", "renameSync", "EPERM"],
  ])("gives a generation to one of two processes, %s", async (_how, naming, code) => {
    const { home, store } = await storeWithGrant();
    const other = fileStore(folder());
    await withFaults(noLinks(code), async () => {
      await other.save(madeGrant(), undefined);
      await other.save(madeGrant({ generation: 2, requestedScope: "other" }), 1);
    });
    const [file = ""] = grantFiles(other.location ?? "");
    const theirs = code ? dirname(file) : file;
    const [ours = ""] = grantFiles(home);
    let names = 0;
    const faults = (name: string, [, to]: readonly unknown[]) => {
      // Another process gives the name between the look at the folder and the call.
      if (name === naming && String(to).endsWith("2.json") && names++ === 0) {
        cpSync(theirs, join(dirname(ours), "2.json"), { recursive: true });
      }
      return code && noLinks(code)(name);
    };
    expect(await withFaults(faults, () => store.save(madeGrant({ generation: 2 }), 1))).toBe(false);
    expect(names).toBe(1);
    expect(await store.read(KEY)).toMatchObject({ generation: 2, requestedScope: "other" });
  });

  it.each([
    ["EEXIST", false],
    ["ENOTEMPTY", false],
    ["ENOTDIR", false],
    ["EIO", undefined],
  ])("has a name that is taken by the answer %s to a folder that gets it", async (code, saved) => {
    const { store } = await storeWithGrant();
    const faults = (name: string, [, to]: readonly unknown[]) =>
      name === "renameSync" && String(to).endsWith("2.json") ? code : noLinks("EPERM")(name);
    const work = withFaults(faults, () => store.save(madeGrant({ generation: 2 }), 1));
    if (saved === undefined) expect(await pendingError(work)).toMatchObject({ code: "store_failed" });
    else expect(await work).toBe(saved);
    expect((await store.read(KEY))?.generation).toBe(1);
  });

  it("gets its name on Windows once another program has closed the folder", async () => {
    const { store } = await storeWithGrant();
    onSystem({ name: "win32" });
    let refused = 0;
    const faults = (name: string, [, to]: readonly unknown[]) => {
      const isNaming = name === "renameSync" && String(to).endsWith("2.json");
      return isNaming && refused++ < 2 ? "EPERM" : noLinks("EISDIR")(name);
    };
    expect(await withFaults(faults, () => store.save(madeGrant({ generation: 2 }), 1))).toBe(true);
    expect(refused).toBe(3);
    expect((await store.read(KEY))?.generation).toBe(2);
  });

  it("never shows a name without its content, and loses no record, wherever a save is killed", async () => {
    for (let step = 0; ; step++) {
      const { store } = await storeWithGrant();
      const killed = new Error("killed");
      let calls = 0;
      let isOver = false;
      spy.before = (name) => {
        if (isOver) throw killed;
        if (name === "linkSync") throw failure(name, "EPERM");
        if (/^(?:rename|mkdir|rm|rmdir|write|fsync|open)Sync$/.test(name) && calls++ === step) {
          isOver = true;
          throw killed;
        }
      };
      const saved = await store.save(madeGrant({ generation: 2 }), 1).catch(() => undefined);
      spy.before = () => undefined;
      const { generation } = (await store.read(KEY)) ?? {};
      expect([1, 2], `call ${step}`).toContain(generation);
      if (saved === true) expect(generation).toBe(2);
      expect(await store.save(madeGrant({ generation: 3 }), generation)).toBe(true);
      if (calls <= step) return expect(step).toBeGreaterThan(8);
    }
  });

  it("has the space of the next folder reserved before a refresh is sent", async () => {
    const store = fileStore(folder());
    await withFaults(noLinks("EPERM"), async () => {
      await store.save(madeGrant(), undefined);
      const reservation = await store.reserve(KEY);
      const full = (name: string) => (name === "mkdirSync" ? "ENOSPC" : noLinks("EPERM")(name));
      expect(await withFaults(full, () => reservation.save(madeGrant({ generation: 2 }), 1))).toBe(true);
      await reservation.release();
    });
    expect((await store.read(KEY))?.generation).toBe(2);
  });

  it("does not remove a folder of another program", async () => {
    const path = join(folder(), "mine");
    mkdirSync(path);
    writeFileSync(join(path, "letter"), "");
    expect(discardFile(path)).toBe(false);
    expect(readdirSync(path)).toEqual(["letter"]);
  });
});
