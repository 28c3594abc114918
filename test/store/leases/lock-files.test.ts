import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Attempt, LockFiles } from "../../../src/store/leases/lock-files.js";
import { type LockRecord, thisProcess } from "../../../src/store/leases/lock-owner.js";
import { folder } from "../stores.js";

const NAME = "a".repeat(40);

let count = 0;
const newRecord = (): LockRecord => {
  const id = (++count).toString(16).padStart(12, "0");
  return { id, holder: thisProcess(), at: Date.now(), deadline: 1e15, duration: 60_000, extend: false };
};

function open() {
  const path = join(folder(), "claims");
  const lockFiles = new LockFiles(path);
  return {
    lockFiles,
    path,
    files: () => readdirSync(path).sort(),
    /** Takes an attempt as a process does that has just looked. */
    take(attempt: number): Attempt | undefined {
      const made = newRecord();
      const one = { name: NAME, number: attempt, id: made.id };
      return lockFiles.take(one, made, lockFiles.latest(NAME, attempt)) ? one : undefined;
    },
  };
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it should have been had");
  return value;
}

describe("a lock file", () => {
  it("is had by one", () => {
    const { take, files } = open();
    expect(take(1)).toBeDefined();
    expect(take(1)).toBeUndefined();
    expect(files()).toEqual([`${NAME}.1.claim`]);
  });

  it("is not had by a number whose attempt is over", () => {
    const { lockFiles, take, files } = open();
    for (const attempt of [1, 2, 3]) expect(take(attempt)).toBeDefined();
    expect(files()).toEqual([`${NAME}.2.claim`, `${NAME}.3.claim`]);
    const late = newRecord();
    expect(lockFiles.take({ name: NAME, number: 1, id: late.id }, late, undefined)).toBe(false);
    expect(files()).toEqual([`${NAME}.2.claim`, `${NAME}.3.claim`]);
  });

  it("is not had on the strength of an attempt that has given its number to another", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    const judged = lockFiles.latest(NAME);
    lockFiles.forget(first);
    const second = must(take(1));
    const late = newRecord();
    expect(lockFiles.take({ name: NAME, number: 2, id: late.id }, late, judged)).toBe(false);
    expect(lockFiles.isNewest(second)).toBe(true);
    expect(lockFiles.isNewest(first)).toBe(false);
  });

  it("is not had on the strength of an attempt that is gone", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    const judged = lockFiles.latest(NAME);
    lockFiles.forget(first);
    const late = newRecord();
    expect(lockFiles.take({ name: NAME, number: 2, id: late.id }, late, judged)).toBe(false);
    expect(lockFiles.latest(NAME)).toBeUndefined();
  });

  it("is not had on the strength of an attempt that was marked in the meantime", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    for (const mark of [() => lockFiles.commit(first), () => lockFiles.finish(first, { at: 1, failure: undefined })]) {
      const judged = lockFiles.latest(NAME);
      mark();
      const late = newRecord();
      expect(lockFiles.take({ name: NAME, number: 2, id: late.id }, late, judged)).toBe(false);
      expect(lockFiles.isNewest(first)).toBe(true);
    }
  });

  it("is removed after all marks, and from the oldest on: what stays after a crash is at worst waited for", async () => {
    const removed: string[] = [];
    vi.doMock("node:fs", async (original) => {
      const { spiedFs } = await import("../../helpers/spied-fs.js");
      return spiedFs(await original(), (name, [path]) => {
        if (name === "rmSync" && !String(path).endsWith(".tmp")) removed.push(String(path));
      });
    });
    vi.resetModules();
    onTestFinished(() => {
      vi.doUnmock("node:fs");
      vi.resetModules();
    });
    const fresh = await import("../../../src/store/leases/lock-files.js");
    const lockFiles = new fresh.LockFiles(join(folder(), "claims"));
    const attempts: Attempt[] = [];
    for (let number = 1; number <= 10; number++) {
      const made = newRecord();
      const attempt = { name: NAME, number, id: made.id };
      expect(lockFiles.take(attempt, made, lockFiles.latest(NAME))).toBe(true);
      attempts.push(attempt);
    }
    const [ninth, tenth] = attempts.slice(-2).map(must);
    lockFiles.commit(must(ninth));
    lockFiles.commit(must(tenth));
    removed.length = 0;
    expect(lockFiles.forget(must(tenth))).toBe(true);
    const names = removed.map((path) => path.slice(path.indexOf(NAME) + NAME.length + 1).replace(/\.[0-9a-f]{12}/, ""));
    expect(names.slice(0, 2).sort()).toEqual(["10.sent", "9.sent"]);
    expect(names.slice(2)).toEqual(["9.claim", "10.claim"]);
  });

  it("is marked by a file without content, for which a full disk has room", () => {
    const { lockFiles, take, path } = open();
    const attempt = must(take(1));
    lockFiles.commit(attempt);
    expect(readFileSync(join(path, `${NAME}.1.${attempt.id}.sent`), "utf8")).toBe("");
  });

  it("leaves its followers alone when it is forgotten", () => {
    const { lockFiles, take, files } = open();
    const first = must(take(1));
    const second = must(take(2));
    lockFiles.commit(second);
    lockFiles.forget(first);
    expect(files()).toEqual([`${NAME}.2.${second.id}.sent`, `${NAME}.2.claim`].sort());
    expect(lockFiles.latest(NAME)).toMatchObject({ number: 2, committed: true, done: false });
  });

  it("takes what came before it along when it is forgotten", () => {
    const { lockFiles, take, files } = open();
    const first = must(take(1));
    lockFiles.finish(first, { at: 1, failure: undefined });
    const second = must(take(2));
    lockFiles.commit(second);
    expect(lockFiles.forget(second)).toBe(true);
    expect(files()).toEqual([]);
  });

  it("takes away its own marks only, where its number is another's by now", () => {
    const { lockFiles, take, files } = open();
    const first = must(take(1));
    lockFiles.forget(first);
    const second = must(take(1));
    lockFiles.commit(second);
    lockFiles.finish(first, { at: 1, failure: undefined });
    expect(lockFiles.latest(NAME)).toMatchObject({ committed: true, done: false });
    lockFiles.forget(first);
    lockFiles.rollback(first);
    expect(files()).toEqual([`${NAME}.1.${second.id}.sent`, `${NAME}.1.claim`].sort());
  });

  it("takes away its own marks too where its lock file is gone", () => {
    const { lockFiles, take, path, files } = open();
    const attempt = must(take(1));
    lockFiles.commit(attempt);
    rmSync(join(path, `${NAME}.1.claim`));
    expect(lockFiles.rollback(attempt)).toBe(true);
    expect(files()).toEqual([]);
  });

  it("takes away nothing where its lock file cannot be read, for it may be another's by now", () => {
    const { lockFiles, take, path, files } = open();
    const attempt = must(take(1));
    lockFiles.commit(attempt);
    writeFileSync(join(path, `${NAME}.1.claim`), "{");
    for (const how of ["forget", "rollback"] as const) expect(lockFiles[how](attempt)).toBe(false);
    expect(files()).toHaveLength(2);
  });

  it("does not show that it lives once another one has come after it", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    expect(lockFiles.heartbeat(first)).toBe(true);
    must(take(2));
    expect(lockFiles.heartbeat(first)).toBe(false);
  });

  it("reports what can be read of its end", () => {
    const { lockFiles, take, path } = open();
    const attempt = must(take(1));
    const done = join(path, `${NAME}.1.${attempt.id}.done`);
    expect(lockFiles.ending(attempt)).toBeUndefined();
    for (const [text, ending] of [
      ["", undefined],
      ["7", undefined],
      ['{"at":"now"}', undefined],
      ['{"at":1}', { at: 1, failure: undefined }],
      ['{"at":1,"failure":"no"}', { at: 1, failure: undefined }],
      ['{"at":1,"failure":{"code":"x"}}', { at: 1, failure: undefined }],
    ] as const) {
      writeFileSync(done, text, { mode: 0o600 });
      expect(lockFiles.ending(attempt)).toEqual(ending);
      expect(lockFiles.latest(NAME)?.done).toBe(true);
    }
    const failure = { code: "timeout", class: "unavailable", message: "late", retryable: true } as const;
    lockFiles.finish(attempt, { at: 2, failure });
    expect(lockFiles.ending(attempt)).toEqual({ at: 2, failure });
  });

  it("makes no folder before there is one", () => {
    const { lockFiles, path } = open();
    expect(lockFiles.latest(NAME)).toBeUndefined();
    expect(existsSync(path)).toBe(false);
  });
});
