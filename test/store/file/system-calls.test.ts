import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { type AgentAuthError, isAgentAuthError } from "../../../src/errors.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { fileStore } from "../../../src/store/file/file.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { grantFile, grantFiles } from "../../helpers/grant-files.js";
import { folder } from "../stores.js";

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const FORM = "http://127.0.0.1/callback";

type Call = { name: string; args: readonly unknown[] };

/** Intercepts the calls of the store to the file system. */
const spy = vi.hoisted(() => ({
  calls: [] as string[],
  paths: new Map<number, string>(),
  /** Called before each call; what it throws the call throws, and what it gives is given in place of the call. */
  before: (_call: Call): unknown => undefined,
}));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const watched = "openSync writeSync ftruncateSync fsyncSync closeSync linkSync renameSync rmSync".split(" ");
  const looking = ["fstatSync", "lstatSync", "statSync", "readdirSync", "readFileSync", "mkdirSync"];
  const wrapped = [...watched, ...looking, "writeFileSync", "utimesSync"].map((name) => {
    const call = (...args: unknown[]): unknown => {
      const instead = spy.before({ name, args });
      if (instead !== undefined) return instead;
      const result = (real as unknown as Record<string, (...args: unknown[]) => unknown>)[name]?.(...args);
      if (name === "openSync") spy.paths.set(Number(result), String(args[0]));
      const what = args.slice(0, name === "linkSync" || name === "renameSync" ? 2 : 1);
      if (watched.includes(name)) spy.calls.push([name, ...what.map((one) => nameOf(one))].join(" "));
      return result;
    };
    return [name, call] as const;
  });
  return { ...real, ...Object.fromEntries(wrapped) };
});

/** The meaning of a path or a descriptor, without what differs from run to run. */
function nameOf(argument: unknown): string {
  const path = typeof argument === "number" ? (spy.paths.get(argument) ?? "") : String(argument);
  const file = path.split("/").at(-1) ?? "";
  return file.replace(/^[0-9a-f]{40}/, "id").replace(/\.[0-9a-f]{12}\.tmp$/, ".tmp");
}

beforeEach(() => {
  spy.before = () => undefined;
});

/** A store with one grant of generation 1. */
async function storeWithGrant(): Promise<{ home: string; store: GrantStore }> {
  const home = folder();
  const store = fileStore(home);
  await store.save(madeGrant(), undefined);
  spy.calls.length = 0;
  return { home, store };
}

const of = (...names: string[]) => spy.calls.filter((call) => names.includes(call.split(" ")[0] ?? ""));

describe("a power cut", () => {
  it("finds the content of a grant on the disk before its name, and its name before the call returns", async () => {
    const { store } = await storeWithGrant();
    await store.save(madeGrant({ generation: 2 }), 1);
    const order = of("writeSync", "fsyncSync", "linkSync", "rmSync");
    expect(order.slice(0, 7)).toEqual([
      // The room.
      "writeSync next.tmp",
      "fsyncSync next.tmp",
      // The content.
      "writeSync next.tmp",
      "fsyncSync next.tmp",
      "linkSync next.tmp 2.json",
      "rmSync next.tmp",
      "fsyncSync id",
    ]);
    expect(order.slice(7)).toContain("rmSync 1.json");
  });

  it("finds the content of a client on the disk before its name, and its name before the call returns", async () => {
    const { store } = await storeWithGrant();
    await store.saveClient(madeClient(), FORM);
    expect(of("writeSync", "fsyncSync", "renameSync")).toEqual([
      "writeSync id.json.tmp",
      "fsyncSync id.json.tmp",
      "renameSync id.json.tmp id.json",
      "fsyncSync clients",
    ]);
  });

  it("does not bring back what was removed", async () => {
    const { store } = await storeWithGrant();
    await store.remove(KEY);
    expect(of("rmSync", "fsyncSync")).toEqual(["rmSync 1.json", "fsyncSync id"]);
  });
});

describe("a system that writes only a part at a time", () => {
  it("gets all of it", async () => {
    const { store } = await storeWithGrant();
    const write = vi.fn();
    spy.before = ({ name, args }) => {
      if (name !== "writeSync" || Number(args[3]) <= 100) return undefined;
      write();
      return (writeSync as (...args: unknown[]) => number)(...args.slice(0, 3), 100, args[4]);
    };
    const { writeSync } = await vi.importActual<typeof import("node:fs")>("node:fs");
    await store.save(madeGrant({ generation: 2 }), 1);
    expect(write.mock.calls.length).toBeGreaterThan(3);
    expect((await store.read(KEY))?.tokens.accessToken.reveal()).toBe("access-token-1");
  });

  it("is found full before anything is said to be reserved", async () => {
    const { home, store } = await storeWithGrant();
    let written = 0;
    spy.before = ({ name, args }) => {
      if (name !== "writeSync") return undefined;
      if (written > 0) throw Object.assign(new Error("full"), { code: "ENOSPC" });
      written = 4096;
      return (writeSync as (...args: unknown[]) => number)(...args.slice(0, 3), 4096, args[4]);
    };
    const { writeSync } = await vi.importActual<typeof import("node:fs")>("node:fs");
    expect(await pendingError(store.reserve(KEY))).toMatchObject({ class: "store" });
    expect(grantFiles(home)).toHaveLength(1);
  });
});

describe("a look at a folder while it changes", () => {
  it("does not take a record that is being replaced for none", async () => {
    const { home, store } = await storeWithGrant();
    const own = dirname(grantFile(home));
    let looks = 0;
    spy.before = ({ name, args }) =>
      name === "readdirSync" && args[0] === own && ++looks < 3 ? ["next.abcdef123456.tmp"] : undefined;
    expect((await store.read(KEY))?.generation).toBe(1);
    expect(looks).toBe(3);
  });

  it("takes the record that came where the one that it saw has gone", async () => {
    const { home, store } = await storeWithGrant();
    let raced = false;
    spy.before = ({ name, args }) => {
      if (name !== "openSync" || raced || !String(args[0]).endsWith("/1.json")) return undefined;
      raced = true;
      const path = String(args[0]);
      const text = readFileSync(path, "utf8").replace('"generation": 1', '"generation": 2');
      actual.writeFileSync(path.replace("/1.json", "/2.json"), text, { mode: 0o600 });
      actual.rmSync(path);
      return undefined;
    };
    const actual = await vi.importActual<typeof import("node:fs")>("node:fs");
    expect((await store.read(KEY))?.generation).toBe(2);
    expect(grantFiles(home)).toHaveLength(1);
  });

  it("does not take the name of a save that ends just then for a foreign one", async () => {
    const { home, store } = await storeWithGrant();
    const actual = await vi.importActual<typeof import("node:fs")>("node:fs");
    const path = grantFile(home);
    const temporary = join(dirname(path), "next.abcdef123456.tmp");
    actual.linkSync(path, temporary);
    let looks = 0;
    spy.before = ({ name: call }) => {
      if (call === "fstatSync") looks++;
      if (call === "readdirSync" && looks > 0) actual.rmSync(temporary, { force: true });
      return undefined;
    };
    expect((await store.read(KEY))?.generation).toBe(1);
    expect(actual.existsSync(temporary)).toBe(false);
  });
});

describe("a save that is overtaken between its look and its name", () => {
  /** Does something right before the file of a generation gets its name. */
  function beforeLink(work: (path: string) => void): void {
    spy.before = ({ name, args }) => {
      if (name !== "linkSync") return undefined;
      spy.before = () => undefined;
      work(String(args[1]));
      return undefined;
    };
  }

  it("comes to nothing where the record was removed", async () => {
    const { home, store } = await storeWithGrant();
    const { rmSync } = await vi.importActual<typeof import("node:fs")>("node:fs");
    beforeLink((path) => rmSync(path.replace("/2.json", "/1.json")));
    expect(await store.save(madeGrant({ generation: 2 }), 1)).toBe(false);
    expect(grantFiles(home)).toEqual([]);
  });

  it("publishes nothing where another process starts a new record", async () => {
    const { home, store } = await storeWithGrant();
    const actual = await vi.importActual<typeof import("node:fs")>("node:fs");
    const text = readFileSync(grantFile(home), "utf8");
    await store.remove(KEY);
    beforeLink((path) => actual.writeFileSync(path.replace("/5.json", "/1.json"), text, { mode: 0o600 }));
    expect(await store.save(madeGrant({ generation: 5 }), undefined)).toBe(false);
    expect((await store.read(KEY))?.generation).toBe(1);
  });

  it("has succeeded where its record was written again before it looked", async () => {
    const { home, store } = await storeWithGrant();
    const actual = await vi.importActual<typeof import("node:fs")>("node:fs");
    const own = dirname(grantFile(home));
    let linked = "";
    spy.before = ({ name, args }) => {
      if (name === "linkSync") linked = String(args[1]);
      if (name !== "readdirSync" || args[0] !== own || linked === "") return undefined;
      const text = readFileSync(linked, "utf8").replace('"generation": 2', '"generation": 3');
      actual.writeFileSync(linked.replace("/2.json", "/3.json"), text, { mode: 0o600 });
      for (const generation of [1, 2]) actual.rmSync(linked.replace("/2.json", `/${generation}.json`));
      spy.before = () => undefined;
      return undefined;
    };
    expect(await store.save(madeGrant({ generation: 2 }), 1)).toBe(true);
    expect((await store.read(KEY))?.generation).toBe(3);
  });
});

it("a lock file that is removed loses its marks before itself, so that no mark is ever without it", async () => {
  const { store } = await storeWithGrant();
  await store.lease("x", (lease) => lease.commit(), { durationMs: 60_000, once: true });
  const marks = of("rmSync").filter((call) => /\.(claim|sent)$/.test(call));
  expect(marks.map((call) => call.replace(/[0-9a-f]{12}/, "mark"))).toEqual([
    "rmSync id.1.mark.sent",
    "rmSync id.1.claim",
  ]);
});

describe("a system call that fails, whichever it is", () => {
  const codes = ["EIO", "ENOSPC", "EROFS", "EACCES"];

  /** Runs work once for each system call that it makes, and lets that one fail; gives what failed and what came of it. */
  async function failEach(work: () => Promise<unknown>, allowed = ["store_failed"]): Promise<number> {
    for (let nth = 0; ; nth++) {
      let calls = 0;
      let failed: string | undefined;
      const code = codes[nth % codes.length];
      spy.before = ({ name, args }) => {
        // The way back out of a failure must not fail as well.
        if (name === "closeSync" || calls++ !== nth) return undefined;
        failed = `${name} ${nameOf(args[0])}`;
        throw Object.assign(new Error("injected"), { code, syscall: "a call" });
      };
      const outcome = await work().catch((error: unknown) => error);
      spy.before = () => undefined;
      if (failed === undefined) return nth;
      if (outcome instanceof Error) {
        expect(isAgentAuthError(outcome), `${failed}: ${outcome.stack}`).toBe(true);
        expect(allowed, failed).toContain((outcome as AgentAuthError).code);
      }
    }
  }

  it("leaves the old grant or the new one, and an error of the store", async () => {
    const { store } = await storeWithGrant();
    let generation = 1;
    const made = await failEach(async () => {
      const expected = generation;
      try {
        await store.save(madeGrant({ generation: expected + 1 }), expected);
      } finally {
        spy.before = () => undefined;
        const now = (await store.read(KEY))?.generation ?? 0;
        expect([expected, expected + 1]).toContain(now);
        generation = now;
      }
    });
    expect(made).toBeGreaterThan(15);
    expect(await store.save(madeGrant({ generation: generation + 1 }), generation)).toBe(true);
  });

  it("keeps a grant from being read, listed or removed in no other way than with an error of the store", async () => {
    const { store } = await storeWithGrant();
    expect(await failEach(() => store.read(KEY))).toBeGreaterThan(3);
    expect(await failEach(() => store.list())).toBeGreaterThan(3);
    await failEach(async () => {
      await store.save(madeGrant({ generation: 9 }), undefined).catch(() => undefined);
      await store.remove(KEY);
    });
    expect(await store.remove(KEY)).toBeUndefined();
    expect(await store.read(KEY)).toBeUndefined();
  });

  it.each([true, false])(
    "never hides what was done under a lease, nor keeps it from the next (once: %s)",
    async (once) => {
      const { store } = await storeWithGrant();
      await failEach(async () => {
        let done = false;
        let begun = false;
        const outcome = await store
          .lease(
            "x",
            async (lease) => {
              await lease.commit();
              begun = true;
              done = true;
              return "done";
            },
            { durationMs: 60_000, once },
          )
          .catch((error: unknown) => error);
        if (begun && done) expect(outcome).toBe("done");
        spy.before = () => undefined;
        expect(await store.lease("x", async () => "next", { durationMs: 100, once: true, patienceMs: 5000 })).toBe(
          "next",
        );
        if (outcome instanceof Error) throw outcome;
        // A lock file of our own that cannot be read counts as another's, to be safe.
      }, ["store_failed", "lease_lost"]);
    },
  );
});
