import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { AgentClient } from "../../../src/oauth/agent.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { type FileStoreOptions, fileStore, sealedWith } from "../../../src/store/file/file.js";
import { keychainCipher } from "../../../src/store/keychain/keyring.js";
import { KEY_BYTES } from "../../../src/store/seal/key-ring.js";
import { CipherError, type RecordCipher } from "../../../src/store/seal/sealing.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant, plainGrant } from "../../helpers/grant.js";
import { grantFiles } from "../../helpers/grant-files.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { fc } from "../../helpers/properties.js";
import { ON_LINUX, ON_WINDOWS } from "../../helpers/systems.js";
import { folder } from "../stores.js";

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const OTHER = { profile: "default", server: "https://other.example/mcp" };
const FORM = "http://127.0.0.1/callback";
const BINDING = {
  profile: "default",
  clientId: "id",
  issuer: "https://as.example",
  boundBy: "use",
  boundAt: 5,
} as const;
const onUnix = describe.skipIf(ON_WINDOWS);

interface StoredGrant {
  store: GrantStore;
  home: string;
  /** The file of {@link KEY}'s grant. */
  path: string;
}

/** A file store with the grants of {@link KEY} and {@link OTHER} and a client. */
async function storedGrant(): Promise<StoredGrant> {
  const parent = mkdtempSync(join(tmpdir(), "agentauth-store-"));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const home = join(parent, "home");
  const store = fileStore(home);
  await store.save(madeGrant(OTHER), undefined);
  const before = grantFiles(home);
  await store.save(madeGrant(KEY), undefined);
  await store.saveClient(madeClient(), FORM);
  const [path = ""] = grantFiles(home).filter((one) => !before.includes(one));
  return { store, home, path };
}

const filesOf = (home: string) => readdirSync(home, { recursive: true, withFileTypes: true });
const mode = (path: string) => statSync(path).mode & 0o777;

/** Reading and saving are refused with this in the message, and the other grant is as it was. */
async function expectRefused({ store, path }: StoredGrant, message: string | RegExp, hint?: string): Promise<void> {
  const refusal = expect.objectContaining({
    code: "store_failed",
    class: "store",
    message: expect.stringMatching(message),
  });
  await expect(store.read(KEY)).rejects.toEqual(refusal);
  await expect(store.save(madeGrant({ generation: 2 }), 1)).rejects.toEqual(refusal);
  const error = await store.read(KEY).catch((thrown: unknown) => thrown as { message: string; hint?: string });
  expect((error as { message: string }).message).toContain(path);
  if (hint !== undefined) expect((error as { hint?: string }).hint).toBe(hint);
  const other = await store.read(OTHER);
  expect(other && plainGrant(other)).toEqual(plainGrant(madeGrant(OTHER)));
  expect((await store.list()).map(({ server }) => server)).toEqual([OTHER.server]);
}

onUnix("who can read the files", () => {
  it("[34] is their owner alone: folders 0700, files 0600, whatever the umask (2025-06-18)", async () => {
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));
    const { home } = await storedGrant();
    expect(mode(home)).toBe(0o700);
    const entries = filesOf(home);
    expect(entries).toHaveLength(9);
    for (const entry of entries) {
      expect(mode(join(entry.parentPath, entry.name)), entry.name).toBe(entry.isDirectory() ? 0o700 : 0o600);
    }
  });

  it("[34] is checked: a file that others can read is refused with the command that mends it (2025-06-18)", async () => {
    for (const loose of [0o604, 0o640, 0o660, 0o644, 0o622]) {
      const made = await storedGrant();
      chmodSync(made.path, loose);
      await expectRefused(made, /can be read by others/, `chmod 600 ${made.path}`);
      chmodSync(made.path, 0o600);
      expect(await made.store.read(KEY)).toBeDefined();
    }
  });

  it("is checked for the folder as well", async () => {
    const { store, home, path } = await storedGrant();
    const [own, server] = [dirname(path), dirname(dirname(path))];
    for (const loose of [0o755, 0o770, 0o707]) {
      for (const folder of [dirname(server), server, own, join(home, "clients")]) {
        chmodSync(folder, loose);
        const work = path.startsWith(folder) ? store.read(KEY) : store.readClient(madeClient().issuer, FORM);
        expect(await pendingError(work)).toMatchObject({ class: "store", hint: `chmod 700 ${folder}` });
        if (path.startsWith(folder)) {
          expect(await pendingError(store.save(madeGrant({ generation: 2 }), 1))).toMatchObject({ class: "store" });
        }
        chmodSync(folder, 0o700);
      }
    }
    await expect(store.read(KEY)).resolves.toBeDefined();
  });

  it.each<[string, [string, (store: GrantStore) => Promise<unknown> | undefined][]]>([
    [
      "bindings",
      [
        ["saveBinding", (store) => store.saveBinding?.(BINDING, undefined)],
        ["readBinding", (store) => store.readBinding?.(BINDING)],
        ["listBindings", (store) => store.listBindings?.()],
        ["removeBinding", (store) => store.removeBinding?.(BINDING)],
      ],
    ],
    [
      "revocations",
      [
        ["add", (store) => store.unrevoked?.add(madeGrant())],
        ["list", async ({ unrevoked }) => unrevoked?.list()[Symbol.asyncIterator]().next()],
      ],
    ],
    [
      "pending",
      [
        ["put", (store) => store.shortLived?.put("a", "text", { now: 0, expiresAt: 1 })],
        ["read", (store) => store.shortLived?.read?.("a")],
        ["take", (store) => store.shortLived?.take("a")],
      ],
    ],
  ])("is checked for the folder %s by each operation on it", async (name, operations) => {
    const { store, home } = await storedGrant();
    const folder = join(home, name);
    mkdirSync(folder, { mode: 0o700 });
    chmodSync(folder, 0o755);
    for (const [operation, run] of operations) {
      const error = await pendingError(Promise.resolve(run(store)));
      expect(error, operation).toMatchObject({ class: "store", hint: `chmod 700 ${folder}` });
    }
    expect(readdirSync(folder)).toEqual([]);
    chmodSync(folder, 0o700);
    for (const [, run] of operations) await run(store);
  });

  it("may be readable in the folder above, as long as no other user can write there", async () => {
    const { store, home } = await storedGrant();
    chmodSync(home, 0o755);
    expect(await store.read(KEY)).toBeDefined();
    for (const loose of [0o775, 0o757, 0o777]) {
      chmodSync(home, loose);
      expect(await pendingError(store.read(KEY))).toMatchObject({ class: "store", hint: `chmod go-w ${home}` });
      expect(await pendingError(store.save(madeGrant({ generation: 2 }), 1))).toMatchObject({ class: "store" });
    }
  });

  it("does not appear in the files' names", async () => {
    const { home } = await storedGrant();
    for (const { name } of filesOf(home))
      expect(name).toMatch(/^(grants|clients|[0-9a-f]{40}|(\d+|[0-9a-f]{40})\.json)$/);
  });
});

describe("files that are broken", () => {
  it.each<[string, (text: string) => string]>([
    ["empty", () => ""],
    ["a list", () => "[]"],
    ["a client's", (text) => text.replace('"kind": "grant"', '"kind": "client"')],
    ["without its access token", (text) => text.replace('"accessToken"', '"accessTokens"')],
    ["with an access token that is no string", (text) => text.replace('"access-token-1"', "7")],
    ["with an end that is no number", (text) => text.replace("2000000000000", '"soon"')],
    ["with a way to authenticate that is unknown", (text) => text.replace("client_secret_basic", "client_secret_jwt")],
    ["with a client of unknown origin", (text) => text.replace('"dynamic"', '"guessed"')],
    ["larger than a grant can be", (text) => text + " ".repeat(1024 * 1024)],
  ])("refuses one that is %s, names it, keeps it, and harms no other", async (_what, breakIt) => {
    const made = await storedGrant();
    const broken = breakIt(readFileSync(made.path, "utf8"));
    writeFileSync(made.path, broken);
    await expectRefused(made, /cannot be used|is larger than/);
    expect(readFileSync(made.path, "utf8")).toBe(broken);
  });

  it("says how to move it out of the way", async () => {
    const { store, path } = await storedGrant();
    writeFileSync(path, "");
    expect(await pendingError(store.read(KEY))).toMatchObject({ hint: `move it away: mv ${path} ${path}.broken` });
    renameSync(path, `${path}.broken`);
    expect(await store.read(KEY)).toBeUndefined();
    expect(await store.save(madeGrant(), undefined)).toBe(true);
  });

  it.each(["", "\0\0\0"])(
    "renames one with the content %j where that is heard of, also beside an older one",
    async (text) => {
      const { home, path } = await storedGrant();
      const heard: string[][] = [];
      const store = fileStore(home, { onEmptyFile: (...paths) => heard.push(paths) });
      const client = join(home, "clients", readdirSync(join(home, "clients"))[0] ?? "");
      writeFileSync(client, text);
      expect(await store.readClient(madeClient().issuer, FORM)).toBeUndefined();
      expect(heard.splice(0)).toEqual([[client, `${client}.broken`]]);
      for (const kept of [/\.json\.broken$/, /\.json\.broken\.[0-9a-f]+$/]) {
        writeFileSync(path, text, { mode: 0o600 });
        expect(await store.read(KEY)).toBeUndefined();
        const [[from, to] = []] = heard.splice(0);
        expect([from, to, readFileSync(to ?? "", "utf8")]).toEqual([path, expect.stringMatching(kept), text]);
      }
      expect(await store.list()).toHaveLength(1);
      expect(await store.save(madeGrant(), undefined)).toBe(true);
    },
  );

  it("shows nothing of a broken file's content", async () => {
    const { store, path } = await storedGrant();
    const text = readFileSync(path, "utf8");
    for (const broken of [text.slice(0, -20), text.replace('"access-token-1"', '"access-token-1" "x"'), `${text}x`]) {
      writeFileSync(path, broken);
      const error = await store.read(KEY).catch((thrown: unknown) => thrown);
      expect(inspect(error, { depth: 9 })).not.toMatch(/access-token-1|refresh-token-1|client-secret-1/);
    }
  });

  it("refuses a broken client file, and gives the grants all the same", async () => {
    const { store, home } = await storedGrant();
    const [name] = readdirSync(join(home, "clients"));
    writeFileSync(join(home, "clients", name ?? ""), "{");
    expect(await pendingError(store.readClient(madeClient().issuer, FORM))).toMatchObject({ class: "store" });
    expect(await store.list()).toHaveLength(2);
  });

  it("is reported in the status of its server, and skipped in the status of all", async () => {
    const { store, path } = await storedGrant();
    writeFileSync(path, "");
    const agent = new AgentClient({ store });
    expect(await pendingError(agent.status(KEY.server))).toMatchObject({ class: "store" });
    expect((await agent.status()).map(({ server }) => server)).toEqual([OTHER.server]);
  });

  it("removes a broken file on request", async () => {
    const { store, path } = await storedGrant();
    writeFileSync(path, "");
    await store.remove(KEY);
    expect(await store.read(KEY)).toBeUndefined();
  });
});

describe("records for a short time", () => {
  const life = { now: 0, expiresAt: 1_900_000_000_000 };

  /** A store, its records, and a folder of it. */
  function opened(name: string, options: FileStoreOptions = {}) {
    const parent = mkdtempSync(join(tmpdir(), "agentauth-store-"));
    onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
    const { shortLived, unrevoked } = fileStore(join(parent, "home"), options);
    if (!shortLived?.read || !unrevoked) throw new Error("a file store has both");
    const at = join(parent, "home", name);
    const { put, read, take } = shortLived;
    return { put, read, take, unrevoked, at, files: () => readdirSync(at).sort() };
  }

  it.each(["", "A", "a.b", "../a", "a\n", "\na", "a".repeat(81)])("have no id %j", async (id) => {
    const { put, read, take } = opened("pending");
    const works: (() => Promise<unknown>)[] = [() => put(id, "text", life), () => read(id), () => take(id)];
    for (const work of works) {
      await expect(Promise.resolve().then(work)).rejects.toThrow(
        new TypeError("an id has at most 80 letters and digits"),
      );
    }
  });

  it.each(["a", "0-z", "a".repeat(80)])("have the id %j, and the time at which they expire", async (id) => {
    const { put, take, at, files } = opened("pending");
    expect(await put(id, "text", life)).toBe(true);
    expect(files()).toEqual([`${id}.json`]);
    expect(Math.round(statSync(join(at, `${id}.json`)).mtimeMs)).toBe(life.expiresAt);
    expect([await take(id), files()]).toEqual(["text", []]);
  });

  it("are removed by the next one a minute after they have expired", async () => {
    const { put, files } = opened("pending");
    await put("old", "text", life);
    await put("one", "text", { now: life.expiresAt + 59_999, expiresAt: life.expiresAt + 600_000 });
    expect(files()).toEqual(["old.json", "one.json"]);
    await put("two", "text", { now: life.expiresAt + 60_000, expiresAt: life.expiresAt + 600_000 });
    expect(files()).toEqual(["one.json", "two.json"]);
  });

  it("are sealed for their own name", async () => {
    const { put, read, take, at } = opened("pending", { cipher: keychainCipher(new Uint8Array(KEY_BYTES)) });
    await put("one", "the text", life);
    const sealed = readFileSync(join(at, "one.json"), "utf8");
    expect(sealed).not.toContain("the text");
    expect(await read("one")).toBe("the text");
    writeFileSync(join(at, "two.json"), sealed, { mode: 0o600 });
    for (const open of [read, take]) await expect(open("two")).rejects.toThrow("another file was put in its place");
    expect(await take("one")).toBe("the text");
  });

  it("are logins to be revoked for thirty days, and a minute", async () => {
    const { unrevoked, at, files } = opened("revocations");
    await unrevoked.add(madeGrant());
    const [name = ""] = files();
    const listed = async (ageMs: number) => {
      const time = new Date(Date.now() - ageMs);
      utimesSync(join(at, name), time, time);
      const found: string[] = [];
      for await (const { grant } of unrevoked.list()) found.push(grant.server);
      return found;
    };
    const limit = 30 * 24 * 3_600_000 + 60_000;
    expect(await listed(limit - 30_000)).toEqual([KEY.server]);
    expect([await listed(limit + 1), files()]).toEqual([[], []]);
  });
});

it("each file is sealed for a name of its kind, which other versions read", async () => {
  const names: string[] = [];
  const cipher: RecordCipher = {
    seal: async (text, name) => {
      names.push(name);
      return text;
    },
    open: async (text) => text,
  };
  const store = fileStore(folder(), { cipher });
  await store.save(madeGrant(), undefined);
  await store.saveClient(madeClient(), FORM);
  await store.saveBinding(BINDING, undefined);
  await store.unrevoked?.add(madeGrant());
  await store.shortLived?.put("one", "text", { now: 0, expiresAt: 1 });
  expect(names).toEqual([
    expect.stringMatching(/^grant:[0-9a-f]{40}$/),
    expect.stringMatching(/^client:[0-9a-f]{40}$/),
    expect.stringMatching(/^binding:[0-9a-f]{40}$/),
    expect.stringMatching(/^revocation:[0-9a-f]{40}$/),
    "pending:one",
  ]);
});

describe("saving", () => {
  it("leaves nothing behind but the file", async () => {
    const { store, home } = await storedGrant();
    for (let generation = 1; generation < 5; generation++)
      await store.save(madeGrant({ generation: generation + 1 }), generation);
    expect(grantFiles(home)).toHaveLength(2);
  });

  it("leaves no empty folder of a login that was reserved or removed", async () => {
    const home = folder();
    const store = fileStore(home);
    const folders = () => readdirSync(home, { recursive: true, encoding: "utf8" });
    await store.save(madeGrant(OTHER), undefined);
    const before = folders();
    await (await store.reserve(KEY)).release();
    expect(folders()).toEqual(before);
    await store.save(madeGrant(), undefined);
    await store.remove(KEY);
    expect(folders()).toEqual(before);
  });

  it("gives a reader the old or the new, never a part", async () => {
    const { store, path } = await storedGrant();
    const fd = openSync(path, "r");
    const before = readFileSync(path);
    await store.save(madeGrant({ generation: 2 }), 1);
    expect(readFileSync(fd)).toEqual(before);
    closeSync(fd);
    expect((await store.read(KEY))?.generation).toBe(2);
  });

  it("ignores what a save that was cut short has left", async () => {
    const { store, path } = await storedGrant();
    writeFileSync(join(dirname(path), "next.abcdef123456.tmp"), '{"schema": 1, "ki', { mode: 0o600 });
    expect(await store.list()).toHaveLength(2);
    expect(await store.save(madeGrant({ generation: 2 }), 1)).toBe(true);
  });

  it("makes its folder when something is first saved, and not before", async () => {
    const parent = mkdtempSync(join(tmpdir(), "agentauth-store-"));
    onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
    const store = fileStore(join(parent, "deep", "home"));
    expect(await store.list()).toEqual([]);
    expect(await store.read(KEY)).toBeUndefined();
    expect(readdirSync(parent)).toEqual([]);
    await store.save(madeGrant(), undefined);
    expect(await store.list()).toHaveLength(1);
  });

  it("names the folder that cannot be created", async () => {
    const { home } = await storedGrant();
    const file = join(home, "a-file");
    writeFileSync(file, "");
    const store = fileStore(join(file, "below"));
    expect(await pendingError(store.saveClient(madeClient(), FORM))).toMatchObject({
      class: "store",
      message: expect.stringContaining(file),
    });
  });
});

it("a copy of a file that the user made beside it counts as none", async () => {
  const { home, store } = await storedGrant();
  const binding = {
    profile: "default",
    clientId: "c",
    issuer: "https://as.example",
    boundBy: "use",
    boundAt: 1,
  } as const;
  await store.saveBinding(binding, undefined);
  for (const folder of ["clients", "bindings"]) {
    const [name = ""] = readdirSync(join(home, folder));
    copyFileSync(join(home, folder, name), join(home, folder, `copy of ${name}`));
    copyFileSync(join(home, folder, name), join(home, folder, `${name}.old`));
  }
  expect(await store.listClients?.()).toHaveLength(1);
  expect(await store.listBindings()).toEqual([binding]);
});

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
    expect(await pendingError(scene.agent.token(scene.mcp.url))).toMatchObject({ class: "store" });
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
    expect(await pendingError(scene.agent.token(scene.mcp.url))).toMatchObject({ class: "store" });
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
    expect(await pendingError(scene.agent.token(scene.mcp.url))).toMatchObject({ class: "store" });
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

it("a store without room says so before anything is written over", async () => {
  const home = mkdtempSync(join(tmpdir(), "agentauth-disk-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const store = fileStore(join(home, "home"));
  await store.save(madeGrant(), undefined);
  const room = await store.reserve(madeGrant());
  rmSync(join(home, "home"), { recursive: true });
  expect(await room.save(madeGrant({ generation: 2 }), 1)).toBe(false);
  expect(await store.list()).toEqual([]);
});

const CIPHER_KEY = new Uint8Array(KEY_BYTES).fill(7);
const NAME = "grant:0123456789012345678901234567890123456789";
const TEXT = '{"accessToken": "access-token-1"}\n';

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

type Members = Record<string, string | number>;

const seal = async (text = TEXT, name = NAME) => keychainCipher(CIPHER_KEY).seal(text, name);
const membersOf = (sealed: string) => JSON.parse(sealed) as Members;

/** Why a text cannot be opened. */
async function refusalOf(sealed: string, name = NAME, cipher = keychainCipher(CIPHER_KEY)): Promise<string> {
  try {
    await cipher.open(sealed, name);
  } catch (error) {
    if (error instanceof CipherError) return error.message;
    throw error;
  }
  throw new Error("it was opened");
}

describe("a sealed text", () => {
  it("opens to what was sealed, whatever that was", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme" }),
        fc.string({ unit: "grapheme" }),
        fc.uint8Array({ minLength: KEY_BYTES, maxLength: KEY_BYTES }),
        async (text, name, bytes) => {
          const key = new Uint8Array(bytes);
          return (await keychainCipher(key).open(await keychainCipher(key).seal(text, name), name)) === text;
        },
      ),
    );
  });

  it("is one line of JSON that says how it was sealed", async () => {
    expect(await seal()).toMatch(/^\{.*\}\n$/);
    expect(membersOf(await seal())).toEqual({
      schema: 1,
      kind: "sealed",
      alg: "A256GCM",
      key: "4bb06f8e",
      nonce: expect.stringMatching(/^[\w-]{16}$/),
      data: expect.stringMatching(/^[\w-]+$/),
    });
  });

  it("shows neither the text nor the key", async () => {
    for (const form of ["utf8", "base64", "base64url", "hex"] as const) {
      expect(await seal()).not.toContain(Buffer.from("access-token-1").toString(form).slice(0, 12));
      expect(await seal()).not.toContain(Buffer.from(CIPHER_KEY).toString(form).slice(0, 12));
    }
  });

  it("has another nonce each time", async () => {
    const nonces = await Promise.all(Array.from({ length: 100 }, async () => membersOf(await seal())["nonce"]));
    expect(new Set(nonces).size).toBe(100);
  });

  it("opens under the name that it was sealed for, and under no other", async () => {
    expect(await refusalOf(await seal(), "grant:other")).toMatch(/another file was put in its place/);
  });

  it("does not open once any character of nonce or data is another", async () => {
    const sealed = await seal();
    for (const name of ["nonce", "data"]) {
      const value = String(membersOf(sealed)[name]);
      for (let at = 0; at < value.length; at++) {
        // The next one in the alphabet: in the last place it can stand for the same bytes.
        const other = ALPHABET[ALPHABET.indexOf(value[at] ?? "") ^ 1];
        const changed = { ...membersOf(sealed), [name]: value.slice(0, at) + other + value.slice(at + 1) };
        expect(await refusalOf(JSON.stringify(changed)), `${name} ${at}`).toMatch(/was changed|is not base64url/);
      }
    }
  });

  it("says that it was sealed with another key", async () => {
    const other = keychainCipher(new Uint8Array(KEY_BYTES).fill(8));
    expect(await refusalOf(await seal(), NAME, other)).toMatch(
      /^it was sealed with the key "4bb06f8e", and the keychain has the key "[\da-f]{8}": .*another machine.*lost$/,
    );
  });

  it.each<[string, Members | string, RegExp]>([
    ["that is no JSON", "{", /not valid JSON/],
    ["that is a list", "[]", /not a JSON object/],
    ["that is not sealed", { schema: 1, kind: "grant" }, /^it is not sealed$/],
    ["of a newer schema", { schema: 2 }, /schema is "2"/],
    ["of another algorithm", { alg: "none" }, /alg is "none".*opens "A256GCM"/],
    ["whose key is not named", { key: 7 }, /key is not named/],
    ["with a short nonce", { nonce: "AAAA" }, /nonce does not have 12 bytes/],
    ["with an empty nonce", { nonce: "" }, /nonce is not base64url/],
    ["with data that is cut to less than a tag", { data: "AAAA" }, /data is cut/],
    ["with data in another alphabet", { data: "++//" }, /data is not base64url/],
    ["with data that is no string", { data: 7 }, /data is not base64url/],
  ])("%s is refused with the reason", async (_what, change, reason) => {
    const text = typeof change === "string" ? change : JSON.stringify({ ...membersOf(await seal()), ...change });
    expect(await refusalOf(text)).toMatch(reason);
  });

  it("shows nothing strange of a name for a key that is foreign", async () => {
    expect(await refusalOf(JSON.stringify({ ...membersOf(await seal()), key: "\u001b[2J" }))).toContain('"\\e[2J"');
  });
});

describe("a cipher", () => {
  it("shows nothing of its key", () => {
    const shown = inspect(keychainCipher(CIPHER_KEY), { depth: 9, showHidden: true });
    expect(shown).not.toContain("7, 7");
    expect(shown).not.toContain("07070707");
  });
});

describe("the name of the key of a text", () => {
  it("is there for a sealed text", async () => {
    expect(sealedWith(await seal())).toBe("4bb06f8e");
  });

  it.each(["", "{", "[]", "null", '{"kind": "grant"}', "\u0000"])("is not there for %j", (text) => {
    expect(sealedWith(text)).toBeUndefined();
  });

  it("cannot be read from a text that was sealed and then broken", () => {
    expect(() => sealedWith('{"kind": "sealed"}')).toThrow(CipherError);
  });
});
