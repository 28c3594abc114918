import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { fileStore } from "../../../src/store/file/file.js";
import { pendingError } from "../../helpers/captured.js";
import { madeGrant, plainGrant } from "../../helpers/grant.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { ON_LINUX } from "../../helpers/systems.js";

const TOKEN = "/pool/token";
const HOUR = 3_600_000;
const SIGNAL = new AbortController().signal;

/** Mounts a file system of a size; undefined where that is not allowed. */
function mounted(size: string): string | undefined {
  const path = mkdtempSync(join(tmpdir(), "agentauth-disk-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=700`, "tmpfs", path]);
  if (status !== 0) {
    rmSync(path, { recursive: true });
    return undefined;
  }
  return path;
}

function unmount(path: string): void {
  execFileSync("umount", ["-l", path]);
  rmSync(path, { recursive: true });
}

const probe = ON_LINUX ? mounted("64k") : undefined;
if (probe !== undefined) unmount(probe);

interface Disk {
  home: string;
  /** Leaves not a byte. */
  fill(): void;
  /** Takes away what {@link Disk.fill} wrote. */
  clear(): void;
  /** From here on nothing can be written. */
  freeze(): void;
  /** Undoes {@link Disk.freeze}. */
  thaw(): void;
}

/** A small disk for the length of one test. */
function disk(): Disk {
  const path = mounted("256k");
  if (path === undefined) throw new Error("it was possible a moment ago");
  onTestFinished(() => unmount(path));
  const home = join(path, "home");
  mkdirSync(home, { mode: 0o700 });
  return {
    home,
    fill() {
      for (let nth = 0; statfsSync(path).bavail > 0; nth++)
        writeFileSync(join(path, `filler-${nth}`), Buffer.alloc(4096));
    },
    clear: () => execFileSync("sh", ["-c", 'rm -f "$0"/filler-*', path]),
    freeze: () => execFileSync("mount", ["-o", "remount,ro", path]),
    thaw: () => execFileSync("mount", ["-o", "remount,rw", path]),
  };
}

/** A scene whose grant is stored on a small disk with a login, whose token has `left` ms left. */
async function loggedIn(left: number) {
  const small = disk();
  const scene = await startScene();
  const store = fileStore(small.home);
  const agent = scene.agent({ store });
  await agent.login(scene.mcp.url);
  await scene.clock.sleep(HOUR - left, SIGNAL);
  const key = { profile: "default", server: scene.mcp.url };
  const stored = async () => {
    const grant = await store.read(key);
    return grant && plainGrant(grant);
  };
  return { ...scene, ...small, store, agent, stored, key };
}

const requests = ({ issuer }: Pick<Scene, "issuer">) => issuer.to(TOKEN).length;

describe.skipIf(probe === undefined)("a disk (these need the right to mount one)", () => {
  it("that is full keeps the refresh token from being spent, and keeps the grant", async () => {
    const scene = await loggedIn(0);
    const before = await scene.stored();
    scene.fill();
    expect(await pendingError(scene.agent.token(scene.mcp.url))).toMatchObject({
      class: "store",
      message: expect.stringContaining("ENOSPC"),
    });
    expect(requests(scene)).toBe(1);
    expect(await scene.stored()).toEqual(before);
    scene.clear();
    expect((await scene.agent.token(scene.mcp.url)).value).toBe("access-as-2");
  });

  it("that has room for a claim and not for a grant keeps the refresh token from being spent as well", async () => {
    const { store, key, fill, clear, home, stored, ...scene } = await loggedIn(0);
    const before = await stored();
    fill();
    clear();
    writeFileSync(join(home, "..", "filler-x"), Buffer.alloc(statfsSync(home).bavail * 4096 - 16_384));
    expect(await pendingError(scene.agent.token(scene.mcp.url))).toMatchObject({
      class: "store",
      message: expect.stringContaining("ENOSPC"),
    });
    expect(await pendingError(store.reserve(key))).toMatchObject({ class: "store" });
    expect(requests(scene)).toBe(1);
    expect(await stored()).toEqual(before);
  });

  it("that fills up while the issuer answers takes the new tokens: their room was reserved", async () => {
    const scene = await loggedIn(0);
    scene.issuer.routes[TOKEN] = (_request, nth) => {
      scene.fill();
      return { json: scene.issuer.tokens(nth) };
    };
    expect((await scene.agent.token(scene.mcp.url)).value).toBe("access-as-2");
    expect((await scene.stored())?.tokens.refreshToken).toBe("refresh-as-2");
    expect(requests(scene)).toBe(2);
  });

  it("that fills up in the middle of a save larger than its room keeps what was there", async () => {
    const { store, key, fill } = await loggedIn(0);
    const room = await store.reserve(key);
    const grant = await store.read(key);
    if (!grant) throw new Error("signed in");
    fill();
    const large = { ...grant, generation: grant.generation + 1, requestedScope: "x".repeat(100_000) };
    expect(await pendingError(room.save(large, grant.generation))).toMatchObject({ class: "store" });
    await room.release();
    expect(await store.read(key)).toEqual(grant);
  });

  it("that turns read-only while the issuer answers: the process keeps the new tokens, and saves them later", async () => {
    const scene = await loggedIn(0);
    scene.issuer.routes[TOKEN] = (_request, nth) => {
      scene.freeze();
      return { json: scene.issuer.tokens(nth) };
    };
    expect(await pendingError(scene.agent.token(scene.mcp.url))).toMatchObject({ class: "store" });
    scene.thaw();
    expect((await scene.agent.token(scene.mcp.url)).value).toBe("access-as-2");
    expect((await scene.stored())?.tokens.refreshToken).toBe("refresh-as-2");
    expect(requests(scene)).toBe(2);
  });

  it("that can only be read gives the token while it lives", async () => {
    const scene = await loggedIn(600_000);
    scene.freeze();
    expect((await scene.agent.token(scene.mcp.url)).value).toBe("access-as-1");
    await scene.clock.sleep(580_000, SIGNAL);
    // It is due for a refresh, which cannot be saved; it is still valid.
    expect((await scene.agent.token(scene.mcp.url)).value).toBe("access-as-1");
    expect(requests(scene)).toBe(1);
  });

  it("that can only be read gives an error when the token has ended, and sends nothing", async () => {
    const scene = await loggedIn(0);
    scene.freeze();
    expect(await pendingError(scene.agent.token(scene.mcp.url))).toMatchObject({
      class: "store",
      message: expect.stringContaining("EROFS"),
    });
    expect(await pendingError(scene.agent.token(scene.mcp.url, { forceRefresh: true }))).toMatchObject({
      class: "store",
    });
    expect(requests(scene)).toBe(1);
    expect(await scene.store.list()).toHaveLength(1);
  });

  it("that can only be read fails before the user has to log in", async () => {
    const small = disk();
    const scene = await startScene();
    const agent = scene.agent({ store: fileStore(small.home) });
    small.freeze();
    expect(await pendingError(agent.login(scene.mcp.url))).toMatchObject({ class: "store" });
    expect(scene.login.opened).toEqual([]);
  });
});

describe("a store without room", () => {
  it("says so before anything is written over", async () => {
    const home = mkdtempSync(join(tmpdir(), "agentauth-disk-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    const store = fileStore(join(home, "home"));
    await store.save(madeGrant(), undefined);
    const room = await store.reserve(madeGrant());
    rmSync(join(home, "home"), { recursive: true });
    expect(await room.save(madeGrant({ generation: 2 }), 1)).toBe(false);
    expect(await store.list()).toEqual([]);
  });
});
