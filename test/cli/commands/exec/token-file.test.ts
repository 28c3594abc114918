import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type FileToken,
  keepTokenFileFresh,
  type RefreshedTokenFile,
  type RefreshedTokenFileOptions,
} from "../../../../src/cli/commands/exec/token-file.js";
import { systemClock } from "../../../../src/http/deadline.js";
import { temporaryFolder, until } from "../../../helpers/cli.js";

let folder: string;
let file: RefreshedTokenFile | undefined;

beforeEach(() => {
  folder = join(temporaryFolder(), "run");
});
afterEach(async () => {
  await file?.stop();
  file = undefined;
});

/** A token that ends so soon that it is asked for another in a second. */
const ending = (value: string): FileToken => ({ value, expiresAt: new Date(Date.now() + 1000) });
const lasting = (value: string): FileToken => ({ value, expiresAt: new Date(Date.now() + 3_600_000) });

/** Waits that are over at once, but for the last, which lasts until the end. */
function handClock(last = 4) {
  const waits: number[] = [];
  const sleep = async (ms: number, signal: AbortSignal) => {
    waits.push(ms);
    if (waits.length >= last) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  };
  return { waits, clock: { epoch: Date.now, sleep } };
}

function keep(options: Partial<RefreshedTokenFileOptions>): RefreshedTokenFile {
  file = keepTokenFileFresh({
    folder,
    first: lasting("token-1"),
    clock: systemClock,
    getToken: async () => lasting("token-1"),
    onToken() {},
    onFailure() {},
    minTtl: 60,
    ...options,
  });
  return file;
}

describe("the file", () => {
  it("holds the token and nothing else, and is for its owner alone", () => {
    const { path } = keep({});
    expect(readFileSync(path, "utf8")).toBe("token-1");
    expect([path, dirname(path), folder].map((one) => (statSync(one).mode & 0o777).toString(8))).toEqual([
      "600",
      "700",
      "700",
    ]);
  });

  it("goes away with its folder, and nothing waits for the exit any more", async () => {
    const before = process.listenerCount("exit");
    const { path, stop } = keep({});
    expect(process.listenerCount("exit")).toBe(before + 1);
    await stop();
    expect([existsSync(path), readdirSync(folder)]).toEqual([false, []]);
    expect(process.listenerCount("exit")).toBe(before);
  });

  it("is one of its own for each run", () => {
    const first = keep({});
    const second = keep({});
    expect(second.path).not.toBe(first.path);
    return first.stop();
  });

  it("is made in no folder that others can enter", () => {
    mkdirSync(folder);
    chmodSync(folder, 0o777);
    expect(() => keep({})).toThrow(expect.objectContaining({ class: "store", hint: `chmod 700 ${folder}` }));
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("a token that ends", () => {
  it("is replaced by the next, which others get before the file has it", async () => {
    const reported: string[] = [];
    const { path } = keep({
      first: ending("token-1"),
      getToken: async () => lasting("token-2"),
      onToken: (token) => reported.push(`${token} ${readFileSync(path, "utf8")}`),
    });
    await until(() => readFileSync(path, "utf8") === "token-2");
    expect(reported).toEqual(["token-2 token-1"]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path))).toEqual(["token"]);
  });

  it("stays where there is no other yet; that is reported once, and tried again ten seconds later", async () => {
    const reported: string[] = [];
    const { waits, clock } = handClock();
    const answers = [new Error("the issuer is away"), new Error("the issuer is away"), lasting("token-2")];
    const { path } = keep({
      first: ending("token-1"),
      getToken: async () => {
        expect(readFileSync(path, "utf8")).toBe("token-1");
        const answer = answers.shift();
        if (answer instanceof Error || answer === undefined) throw answer;
        return answer;
      },
      onFailure: (error) => reported.push(String(error)),
      clock,
    });
    await until(() => waits.length === 4);
    expect(readFileSync(path, "utf8")).toBe("token-2");
    expect([reported, waits]).toEqual([["Error: the issuer is away"], [1000, 10_000, 10_000, 30_000]]);
  });

  it.each<[string, number | undefined, number]>([
    ["a minute before its end", 80, 20_000],
    ["at half of what is left, where that is less", 20, 10_000],
    ["not more than once a second", 1, 1000],
    ["also where it has ended already", -50, 1000],
    ["now and then, where it lives long: others may renew it too", 3600, 30_000],
    ["now and then, where its end is not known", undefined, 30_000],
  ])("is asked about %s", async (_when, secondsLeft, wait) => {
    const { waits, clock } = handClock(1);
    const expiresAt = secondsLeft === undefined ? undefined : new Date(1_000_000 + secondsLeft * 1000);
    keep({ first: { value: "token-1", expiresAt }, clock: { ...clock, epoch: () => 1_000_000 } });
    await until(() => waits.length === 1);
    expect(waits).toEqual([wait]);
  });

  it("is not asked for any more after the end, and a question on its way is called back", async () => {
    let called: AbortSignal | undefined;
    const reported: unknown[] = [];
    const { stop, path } = keep({
      first: ending("token-1"),
      getToken: (signal) => {
        called = signal;
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
      onFailure: (error) => reported.push(error),
    });
    await until(() => called !== undefined);
    await stop();
    expect([called?.aborted, reported, existsSync(path)]).toEqual([true, [], false]);
  });
});

describe("a file that was removed", () => {
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

  it.each<[string, (path: string) => string]>([
    ["alone", (path) => path],
    ["with its folder", (path) => dirname(path)],
    ["with the folder of all of them", (path) => dirname(dirname(path))],
  ])("%s is there again at the next look, for its owner alone, and that is no trouble", async (_what, gone) => {
    const reported: unknown[] = [];
    const { waits, clock } = handClock(3);
    const answers = [lasting("token-1"), lasting("token-1")];
    const { path } = keep({
      getToken: async () => {
        rmSync(gone(path), { recursive: true });
        return answers.shift() ?? lasting("?");
      },
      onFailure: (error) => reported.push(error),
      clock,
    });
    await until(() => waits.length === 3);
    expect(readFileSync(path, "utf8")).toBe("token-1");
    expect([path, dirname(path), folder].map(mode)).toEqual(["600", "700", "700"]);
    expect([reported, waits]).toEqual([[], [30_000, 30_000, 30_000]]);
  });

  it("and cannot be written again is reported once, however often it is tried", async () => {
    const reported: unknown[] = [];
    const { waits, clock } = handClock(5);
    const { path } = keep({
      getToken: async () => {
        if (existsSync(path)) rmSync(folder, { recursive: true });
        writeFileSync(folder, "in its place");
        return lasting("token-1");
      },
      onFailure: (error) => reported.push(error),
      clock,
    });
    await until(() => waits.length === 5);
    expect(reported).toHaveLength(1);
    expect(waits).toEqual([30_000, 10_000, 10_000, 10_000, 10_000]);
  });

  it("is not written where a link or a folder that all can write is in its place", async () => {
    const reported: string[] = [];
    const elsewhere = join(temporaryFolder(), "elsewhere");
    const { waits, clock } = handClock(4);
    const ways = [
      () => {
        rmSync(folder, { recursive: true });
        mkdirSync(elsewhere, { mode: 0o700 });
        symlinkSync(elsewhere, folder);
      },
      () => {
        rmSync(folder);
        mkdirSync(folder);
        chmodSync(folder, 0o777);
      },
      () => {
        chmodSync(folder, 0o700);
        mkdirSync(dirname(path));
        chmodSync(dirname(path), 0o777);
      },
    ];
    const { path } = keep({
      getToken: async () => {
        ways.shift()?.();
        return lasting("token-1");
      },
      onFailure: (error) => reported.push(String(error)),
      clock,
    });
    await until(() => waits.length === 4);
    expect([existsSync(path), readdirSync(elsewhere)]).toEqual([false, []]);
    expect([reported.length, waits.slice(1)]).toEqual([1, [10_000, 10_000, 10_000]]);
  });
});

describe("files of runs that were killed", () => {
  const made = (name: string, hoursOld: number) => {
    const own = join(folder, name);
    mkdirSync(own, { recursive: true, mode: 0o700 });
    writeFileSync(join(own, "token"), "token-0", { mode: 0o600 });
    const then = Date.now() / 1000 - hoursOld * 3600;
    for (const path of [join(own, "token"), own]) utimesSync(path, then, then);
    return own;
  };

  it("are removed after a day; younger ones may be in use", () => {
    mkdirSync(folder, { mode: 0o700 });
    const [old, young, other] = [made("exec-old", 25), made("exec-young", 23), made("other", 25)];
    keep({});
    expect([old, young, other].map((path) => existsSync(path))).toEqual([false, true, true]);
  });

  it("that cannot be looked at are in no one's way", () => {
    mkdirSync(folder, { mode: 0o700 });
    const loop = join(folder, "exec-loop");
    symlinkSync(loop, loop);
    const old = made("exec-old", 25);
    expect(existsSync(keep({}).path)).toBe(true);
    expect(existsSync(old)).toBe(false);
  });
});
