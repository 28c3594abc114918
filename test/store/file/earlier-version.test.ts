import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { GrantStore } from "../../../src/oauth/grant/grant-store.js";
import { fileStore } from "../../../src/store/file/file.js";
import { madeGrant } from "../../helpers/grant.js";
import { grantFiles } from "../../helpers/grant-files.js";
import { startScene } from "../../helpers/issuer.js";
import { fc } from "../../helpers/properties.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { folder } from "../stores.js";
import { oldFileStore } from "./old-version/old-file-store.js";
import { KEY } from "./support.js";

const HOUR = 3_600_000;
const SIGNAL = new AbortController().signal;
const LATER = madeGrant().signedInAt + 1000;
const onUnix = describe.skipIf(ON_WINDOWS);

/** A folder that both versions use. */
function both(): { home: string; old: GrantStore; store: GrantStore } {
  const home = folder();
  return { home, old: oldFileStore(home), store: fileStore(home) };
}

const earlierFiles = (home: string) => (existsSync(join(home, "grants")) ? readdirSync(join(home, "grants")) : []);
const newFiles = (home: string) => grantFiles(home).filter((path) => path.includes("grants-by-server"));

describe("the grants of an earlier version", () => {
  it("are read and listed where they are, and nothing is written", async () => {
    const { home, old, store } = both();
    const accounts = [undefined, "", "ann"];
    for (const account of accounts) await old.save(madeGrant({ account }), undefined);
    for (const account of accounts) expect(await store.read({ ...KEY, account })).toMatchObject({ account });
    expect(await store.list()).toHaveLength(3);
    expect(await store.list({ profile: "default", server: KEY.server })).toHaveLength(3);
    expect(await store.list({ server: "https://other.example/mcp" })).toEqual([]);
    expect(readdirSync(home)).toEqual(["grants"]);
  });

  it("move when they are saved, with the members that this version does not know", async () => {
    const { home, old, store } = both();
    await old.save(madeGrant({ ofTomorrow: "stays" } as object), undefined);
    await old.save(madeGrant({ account: "other" }), undefined);
    expect(await store.save(madeGrant({ generation: 2 }), 1)).toBe(true);
    expect(earlierFiles(home)).toHaveLength(1);
    expect(newFiles(home).map((path) => basename(path))).toEqual(["2.json"]);
    expect(await store.read(KEY)).toMatchObject({ generation: 2 });
    expect(await old.read(KEY)).toBeUndefined();
    expect(await store.list()).toHaveLength(2);
    const [path = ""] = newFiles(home);
    expect(await (await import("node:fs/promises")).readFile(path, "utf8")).toContain('"ofTomorrow": "stays"');
  });

  it("are saved over as any other: from the generation that was read", async () => {
    const { home, old, store } = both();
    await old.save(madeGrant(), undefined);
    const room = await store.reserve(KEY);
    expect(await store.save(madeGrant({ generation: 2 }), undefined)).toBe(false);
    expect(await store.save(madeGrant({ generation: 3 }), 2)).toBe(false);
    await old.save(madeGrant({ generation: 2 }), 1);
    expect(await room.save(madeGrant({ generation: 2 }), 1)).toBe(false);
    await room.release();
    expect(await store.read(KEY)).toMatchObject({ generation: 2 });
    const rivals = Array.from({ length: 10 }, (_, nth) =>
      store.save(madeGrant({ generation: 3, requestedScope: `s${nth}` }), 2),
    );
    expect((await Promise.all(rivals)).filter(Boolean)).toHaveLength(1);
    expect(earlierFiles(home)).toEqual([]);
    expect(newFiles(home)).toHaveLength(1);
  });

  it("move with what an interrupted save of that version left", async () => {
    const { home, old, store } = both();
    await old.save(madeGrant(), undefined);
    const [name = ""] = earlierFiles(home);
    copyFileSync(join(home, "grants", name), join(home, "copy"));
    await old.save(madeGrant({ generation: 2 }), 1);
    copyFileSync(join(home, "copy"), join(home, "grants", name));
    expect(await store.save(madeGrant({ generation: 3 }), 2)).toBe(true);
    expect(earlierFiles(home)).toEqual([]);
  });

  it("are removed, in both places", async () => {
    const { home, old, store } = both();
    await store.save(madeGrant(), undefined);
    await old.save(madeGrant({ signedInAt: LATER }), undefined);
    await store.remove(KEY);
    expect(grantFiles(home)).toEqual([]);
    expect(await store.read(KEY)).toBeUndefined();
  });

  it("are not replaced where they cannot be read", async () => {
    const { home, old, store } = both();
    await old.save(madeGrant(), undefined);
    const [name = ""] = earlierFiles(home);
    const path = join(home, "grants", name);
    writeFileSync(path, "{");
    await expect(store.read(KEY)).rejects.toMatchObject({ class: "store", hint: expect.stringContaining(path) });
    await expect(store.save(madeGrant({ generation: 2 }), 1)).rejects.toMatchObject({ class: "store" });
    expect(await store.list()).toEqual([]);
    expect(earlierFiles(home)).toEqual([name]);
  });
});

describe("a login that both versions stored", () => {
  it.each([
    ["a later login counts, whatever its generation", { signedInAt: LATER, generation: 1 }, "theirs"],
    ["an earlier login does not", { signedInAt: LATER - 2000, generation: 9 }, "ours"],
    ["the higher generation of one login counts", { generation: 6 }, "theirs"],
    ["the lower generation of one login does not", { generation: 4 }, "ours"],
    ["the same generation counts once", { generation: 5 }, "ours"],
  ])("%s", async (_what, over, winner) => {
    const { home, old, store } = both();
    await store.save(madeGrant({ generation: 5, requestedScope: "ours" }), undefined);
    await old.save(madeGrant({ ...over, requestedScope: "theirs" }), undefined);
    const before = await store.read(KEY);
    expect(before?.requestedScope).toBe(winner);
    expect((await store.list()).map(({ requestedScope }) => requestedScope)).toEqual([winner]);
    const next = { ...before, generation: (before?.generation ?? 0) + 1, requestedScope: "next" };
    expect(await store.save(madeGrant(next), before?.generation)).toBe(true);
    expect((await store.read(KEY))?.requestedScope).toBe("next");
    expect(earlierFiles(home)).toEqual([]);
    expect(newFiles(home)).toHaveLength(1);
  });

  it("is replaced by a login of this version", async () => {
    const { home, old, store } = both();
    await store.save(madeGrant({ generation: 5 }), undefined);
    await old.save(madeGrant({ signedInAt: LATER }), undefined);
    expect(await store.save(madeGrant({ signedInAt: LATER + 1, generation: 2 }), 1)).toBe(true);
    expect(await store.read(KEY)).toMatchObject({ signedInAt: LATER + 1, generation: 2 });
    expect(earlierFiles(home)).toEqual([]);
    expect(newFiles(home)).toHaveLength(1);
  });
});

onUnix("the folder of an earlier version", () => {
  it("is refused where others can enter it", async () => {
    const { home, old, store } = both();
    await old.save(madeGrant(), undefined);
    chmodSync(join(home, "grants"), 0o755);
    const refusal = { class: "store", hint: `chmod 700 ${join(home, "grants")}` };
    await expect(store.read(KEY)).rejects.toMatchObject(refusal);
    await expect(store.list()).rejects.toMatchObject(refusal);
    await expect(store.save(madeGrant({ generation: 2 }), 1)).rejects.toMatchObject(refusal);
  });

  it("is not needed", async () => {
    const { home, store } = both();
    mkdirSync(join(home, "grants"), { mode: 0o700 });
    await store.save(madeGrant(), undefined);
    expect(await store.list()).toHaveLength(1);
    expect(earlierFiles(home)).toEqual([]);
  });
});

/** An issuer that accepts each refresh token once, and both versions as its clients. */
async function sharing() {
  const scene = await startScene();
  const { home, old, store } = both();
  const used: string[] = [];
  const token = scene.issuer.routes["/pool/token"];
  scene.issuer.routes["/pool/token"] = (request, nth) => {
    const refreshToken = new URLSearchParams(request.body).get("refresh_token");
    if (refreshToken !== null) used.push(refreshToken);
    if (used.filter((one) => one === refreshToken).length > 1) return { status: 400, json: { error: "invalid_grant" } };
    return typeof token === "function" ? token(request, nth) : (token ?? {});
  };
  const agent = (of: GrantStore, over: Partial<AgentClientOptions> = {}) => scene.agent({ store: of, ...over });
  const expire = () => scene.clock.sleep(HOUR, SIGNAL);
  return { ...scene, home, old, store, agent, expire, used, url: scene.mcp.url };
}

describe("two versions that share a folder", () => {
  it("use one login until the newer one has refreshed it", async () => {
    const { agent, old, store, expire, url, used, home } = await sharing();
    await agent(old).login(url);
    const silent = { login: undefined };
    for (const of of [old, store]) expect((await agent(of, silent).token(url)).value).toBe("access-as-1");
    await expire();
    expect((await agent(old, silent).token(url)).value).toBe("access-as-2");
    expect((await agent(store, silent).token(url)).value).toBe("access-as-2");
    await expire();
    expect((await agent(store, silent).token(url)).value).toBe("access-as-3");
    await expect(agent(old, silent).token(url)).rejects.toMatchObject({ code: "login_required" });
    expect(earlierFiles(home)).toEqual([]);
    expect((await agent(old).token(url)).value).toBe("access-as-4");
    expect((await agent(store, silent).token(url)).value).toBe("access-as-4");
    expect(new Set(used).size).toBe(used.length);
  });

  it("send one request where both refresh at once, and no login is lost", async () => {
    const { agent, old, store, expire, url, used } = await sharing();
    const silent = { login: undefined };
    for (let round = 0; round < 10; round++) {
      await agent(old).login(url);
      await expire();
      used.length = 0;
      const outcomes = await Promise.allSettled([old, store, old, store].map((of) => agent(of, silent).token(url)));
      expect(used).toHaveLength(1);
      for (const [nth, outcome] of outcomes.entries()) {
        if (nth % 2 === 1) expect(outcome.status).toBe("fulfilled");
        else if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "login_required" });
      }
      await agent(store, silent).token(url);
    }
  });

  it("lose no login in any order of calls, and use no refresh token twice", async () => {
    const call = fc.constantFrom(
      "old token",
      "new token",
      "old login",
      "new login",
      "expire",
      "old logout",
      "new logout",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 4, maxLength: 14 }), async (calls) => {
        const { agent, old, store, expire, url, used, clock } = await sharing();
        for (const one of calls) {
          const [version, what] = one.split(" ");
          const of = version === "old" ? old : store;
          await clock.sleep(1000, SIGNAL);
          if (one === "expire") await expire();
          else if (what === "logout") await agent(of).logout(url);
          else if (what === "login") await agent(of).login(url);
          else await agent(of).token(url);
          const stored = await agent(store, { login: undefined }).status(url);
          if (what === "login" || what === "token") expect(stored).toMatchObject([{ state: expect.any(String) }]);
          if (one === "new logout") expect(stored).toEqual([]);
        }
        await agent(store).token(url);
        await expire();
        // A login that is stored is refreshed: it has not been spent by the other version.
        await agent(store, { login: undefined }).token(url);
        expect(new Set(used).size).toBe(used.length);
      }),
      { numRuns: 12 },
    );
  });

  it("end a refresh of either version by a logout of the newer one", async () => {
    for (const version of ["old", "store"] as const) {
      const scene = await sharing();
      const { agent, old, store, expire, url, issuer, home } = scene;
      await agent(old).login(url);
      await expire();
      const answer = issuer.routes["/pool/token"];
      issuer.routes["/pool/token"] = async (request, nth) => {
        await agent(store).logout(url);
        return typeof answer === "function" ? answer(request, nth) : (answer ?? {});
      };
      await expect(agent(scene[version], { login: undefined }).token(url)).rejects.toMatchObject({
        code: "login_required",
      });
      expect(grantFiles(home)).toEqual([]);
    }
  });
});
