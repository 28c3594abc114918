import {
  copyFileSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { pendingError } from "../../helpers/captured.js";
import { madeGrant } from "../../helpers/grant.js";
import { grantFile as fileOf, grantFiles } from "../../helpers/grant-files.js";
import { folder } from "../stores.js";
import { filesOf, KEY, storeWithGrant } from "./support.js";

/** The path of the only temporary file. */
const temporaryOf = (home: string) => grantFiles(home).find((path) => path.endsWith(".tmp")) ?? "";
/** The path that a generation of the only grant has. */
const generationOf = (home: string, generation: number) =>
  join(dirname(grantFiles(home)[0] ?? ""), `${generation}.json`);

describe("what a save that was killed leaves", () => {
  it("is swept when it is ten minutes old, and not before", async () => {
    const { home, store } = await storeWithGrant();
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000);
    for (const [name, minutes] of [["old", 11] as const, ["young", 9] as const]) {
      const path = join(dirname(fileOf(home)), `next.${name}.tmp`);
      writeFileSync(path, "half", { mode: 0o600 });
      utimesSync(path, at(minutes), at(minutes));
    }
    const other = { ...KEY, profile: "other" };
    await store.save(madeGrant(other), undefined);
    for (const path of grantFiles(home)) if (path.endsWith(".json")) utimesSync(path, at(60), at(60));
    await store.save(madeGrant({ generation: 2 }), 1);
    expect(filesOf(home).filter((name) => name.endsWith(".tmp"))).toEqual(["next.young.tmp"]);
    expect(await store.read(other)).toBeDefined();
  });

  it("is no hindrance where it is the second name of the file", async () => {
    const { home, store } = await storeWithGrant();
    linkSync(fileOf(home), fileOf(home).replace(/1\.json$/, "next.abcdef123456.tmp"));
    expect((await store.read(KEY))?.generation).toBe(1);
    expect(await store.save(madeGrant({ generation: 2 }), 1)).toBe(true);
    expect((await store.read(KEY))?.generation).toBe(2);
  });

  it("does not excuse a name that is not of a save", async () => {
    const { home, store } = await storeWithGrant();
    linkSync(fileOf(home), fileOf(home).replace(/1\.json$/, "next.abcdef123456.tmp"));
    linkSync(fileOf(home), join(home, "elsewhere"));
    expect(await pendingError(store.read(KEY))).toMatchObject({ class: "store" });
  });

  it("does not excuse a name elsewhere where it is another file", async () => {
    const { home, store } = await storeWithGrant();
    writeFileSync(fileOf(home).replace(/1\.json$/, "next.abcdef123456.tmp"), "half", { mode: 0o600 });
    linkSync(fileOf(home), join(home, "elsewhere"));
    expect(await pendingError(store.read(KEY))).toMatchObject({ message: expect.stringContaining("hard link") });
  });

  it("is the generation before, where it was killed before it took that away: the newest counts", async () => {
    const { home, store } = await storeWithGrant();
    const first = fileOf(home);
    const copy = `${first}.copy`;
    copyFileSync(first, copy);
    await store.save(madeGrant({ generation: 2 }), 1);
    copyFileSync(copy, first);
    rmSync(copy);
    expect((await store.read(KEY))?.generation).toBe(2);
    expect(await store.list()).toHaveLength(1);
    expect(await store.save(madeGrant({ generation: 3 }), 2)).toBe(true);
    expect(filesOf(home)).toHaveLength(1);
  });
});

describe("removing one record", () => {
  it("leaves the room of another alone", async () => {
    const { home, store } = await storeWithGrant();
    const other = { ...KEY, profile: "other" };
    const room = await store.reserve(other);
    await store.remove(KEY);
    expect(filesOf(home)).toHaveLength(1);
    expect(await room.save(madeGrant(other), undefined)).toBe(true);
  });

  it("removes every generation that is there", async () => {
    const { home, store } = await storeWithGrant();
    for (const generation of [2, 3]) copyFileSync(generationOf(home, 1), generationOf(home, generation));
    await store.remove(KEY);
    expect(filesOf(home)).toEqual([]);
  });
});

it("two savers in one process that both found nothing do not both succeed, whatever their generations", async () => {
  for (const generations of [
    [1, 2],
    [2, 1],
    [3, 3],
  ]) {
    const store = fileStore(folder());
    const saved = await Promise.all(generations.map((generation) => store.save(madeGrant({ generation }), undefined)));
    expect(saved.filter(Boolean)).toHaveLength(1);
    expect((await store.read(KEY))?.generation).toBe(generations[saved.indexOf(true)]);
  }
});

describe("room that was reserved", () => {
  it("is given back", async () => {
    const { home, store } = await storeWithGrant();
    const room = await store.reserve(KEY);
    expect(filesOf(home)).toHaveLength(2);
    await room.release();
    expect(filesOf(home)).toHaveLength(1);
  });

  it("saves also where another process swept it as a leftover", async () => {
    const { home, store } = await storeWithGrant();
    const room = await store.reserve(KEY);
    rmSync(temporaryOf(home));
    expect(await room.save(madeGrant({ generation: 2 }), 1)).toBe(true);
    await room.release();
    expect((await store.read(KEY))?.generation).toBe(2);
    expect(filesOf(home)).toHaveLength(1);
  });

  it("is not repeated where another save came first", async () => {
    const { home, store } = await storeWithGrant();
    const room = await store.reserve(KEY);
    const saving = room.save(madeGrant({ generation: 2 }), 1);
    // The save of another process, after this one has read the grant and before it writes.
    renameSync(generationOf(home, 1), generationOf(home, 2));
    expect(await saving).toBe(false);
    await room.release();
    expect(filesOf(home).filter((one) => one.endsWith(".tmp"))).toEqual([]);
  });

  it("takes a grant that is larger than it", async () => {
    const { store } = await storeWithGrant();
    const room = await store.reserve(KEY);
    const tokens = { ...madeGrant().tokens, accessToken: new Secret("x".repeat(60_000)) };
    expect(await room.save(madeGrant({ generation: 2, tokens }), 1)).toBe(true);
    expect((await store.read(KEY))?.tokens.accessToken.reveal()).toBe("x".repeat(60_000));
  });

  it("is not written to where a link was put in its place", async () => {
    const { home, store } = await storeWithGrant();
    const room = await store.reserve(KEY);
    const reserved = temporaryOf(home);
    rmSync(reserved);
    writeFileSync(join(home, "target"), "untouched");
    symlinkSync(join(home, "target"), reserved);
    expect(await pendingError(room.save(madeGrant({ generation: 2 }), 1))).toMatchObject({ class: "store" });
    expect(readFileSync(join(home, "target"), "utf8")).toBe("untouched");
    expect((await store.read(KEY))?.generation).toBe(1);
  });
});

describe("a file that was renamed or copied by hand", () => {
  it("is refused where its name has another generation than its content", async () => {
    const { home, store } = await storeWithGrant();
    copyFileSync(fileOf(home), generationOf(home, 7));
    expect(await pendingError(store.read(KEY))).toMatchObject({ class: "store" });
    expect(await pendingError(store.save(madeGrant({ generation: 8 }), 7))).toMatchObject({ class: "store" });
  });
});

describe("members that a newer version wrote", () => {
  const withNews = (path: string) => {
    const members = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, unknown>>;
    const tokens = { ...members["tokens"], boundTo: "a key" };
    writeFileSync(path, JSON.stringify({ ...members, tokens, note: { kept: true } }));
  };

  it("are preserved by a refresh of the same login, at every level", async () => {
    const { home, store } = await storeWithGrant();
    withNews(fileOf(home));
    expect(await store.save(madeGrant({ generation: 2, requestedScope: "more" }), 1)).toBe(true);
    expect(JSON.parse(readFileSync(fileOf(home), "utf8"))).toMatchObject({
      note: { kept: true },
      generation: 2,
      requestedScope: "more",
      tokens: { boundTo: "a key", accessToken: "access-token-1" },
    });
  });

  it.each([
    ["another time", { signedInAt: 1_900_000_060_000 }],
    ["another issuer", { issuer: "https://other.example/pool" }],
  ])("are dropped by a new login (%s)", async (_what, over) => {
    const { home, store } = await storeWithGrant();
    withNews(fileOf(home));
    expect(await store.save(madeGrant({ generation: 2, ...over }), 1)).toBe(true);
    const text = readFileSync(fileOf(home), "utf8");
    expect(text).not.toContain("kept");
    expect(text).not.toContain("boundTo");
  });

  it("do not bring back what a refresh leaves out", async () => {
    const { home, store } = await storeWithGrant();
    await store.save(madeGrant({ generation: 2, retired: { at: 1, reason: "over" } }), 1);
    const tokens = { ...madeGrant().tokens, idToken: undefined };
    await store.save(madeGrant({ generation: 3, tokens }), 2);
    const members = JSON.parse(readFileSync(fileOf(home), "utf8")) as Record<string, unknown>;
    expect(members).not.toHaveProperty("retired");
    expect(members["tokens"]).not.toHaveProperty("idToken");
  });
});
