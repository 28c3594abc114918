import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, parse } from "node:path";
import { describe, expect, it } from "vitest";
import { isListening, startListener, storeListener } from "../../../src/cli/clients/started-logins.js";
import { thisProcess } from "../../../src/store/leases/lock-owner.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { startRun } from "../run-support.js";
import { listening, portOf } from "./proxied-service.js";

const ID = "abcdefghijkl";
const ORDER = { id: ID, state: "state-1", ttlMs: 1000 };

describe("the process that waits for a callback", () => {
  async function waits(record: object | undefined, redirect?: string) {
    const { context } = startRun({}, {}, { now: () => 1000 });
    mkdirSync(join(context.home(), "logins"), { mode: 0o700 });
    const server = await listening(createServer());
    if (record !== undefined) storeListener(ID, { ...thisProcess(), until: 1000, ...record }, context);
    const result = await isListening(ID, redirect ?? `http://127.0.0.1:${portOf(server)}/callback`, context);
    server.close();
    return result;
  }

  it("still does where it lives, has time, and its address answers", async () => {
    expect(await waits({})).toBe(true);
    // Of a process in another namespace only the address is known.
    expect(await waits({ space: "another", pid: 1 })).toBe(true);
  });

  it("answers for the name localhost at the address that it has bound", async () => {
    const server = await listening(createServer());
    expect(await waits({}, `http://localhost:${portOf(server)}/callback`)).toBe(true);
    server.close();
  });

  it.each<[string, object | undefined, string?]>([
    ["is not stored", undefined],
    ["has no more time", { until: 999 }],
    ["has ended", { started: "0" }],
    ["has an address that nothing answers at", {}, "http://127.0.0.1:1/callback"],
  ])("does not where it %s", async (_what, record, redirect) => {
    expect(await waits(record, redirect)).toBe(false);
  });
});

describe.skipIf(ON_WINDOWS)("a process that binds the redirect address", () => {
  /** Starts a shell script in its place, which finds its folder in `$folder`. */
  async function start(script: string, env: Record<string, string> = {}) {
    const { context } = startRun({ env });
    const folder = context.home();
    const path = join(folder, "listener");
    writeFileSync(path, `folder=${folder}\n${script}`);
    chmodSync(path, 0o700);
    const program = ["/bin/sh", path] as const;
    const listener = await startListener({ host: undefined, port: 1, preferred: undefined }, { ...context, program });
    return { listener, context, read: (name: string) => readFileSync(join(folder, name), "utf8") };
  }
  const BOUND = `read -r line; printf '%s\\n' "$line" > $folder/first; printf '{"redirectUri":"http://127.0.0.1:1/c"}\\n'\n`;
  const HELD = `read -r line; printf '%s\\n' "$line" > $folder/second; printf '{"isHeld":true}\\n'\n`;

  it("gets its orders by standard input, and nothing of our environment but the folder", async () => {
    const script = `printf '%s' "$*" > $folder/words; pwd > $folder/cwd; env > $folder/env\n${BOUND}${HELD}`;
    const more = {
      SystemRoot: "C:\\Windows",
      windir: "C:\\windir",
      AGENTAUTH_API_TOKEN: "secret",
      PATH: "/bin:/usr/bin",
    };
    const { listener, context, read } = await start(script, more);
    expect(listener?.redirectUri).toBe("http://127.0.0.1:1/c");
    expect(await listener?.waitInBackground(ORDER)).toBe(true);
    expect([read("words"), read("cwd")]).toEqual(["receive-callback", `${parse(process.execPath).root}\n`]);
    expect([JSON.parse(read("first")), JSON.parse(read("second"))]).toEqual([{ port: 1 }, ORDER]);
    const env = Object.fromEntries(
      read("env")
        .trim()
        .split("\n")
        .map((line) => line.split("=")),
    );
    const { AGENTAUTH_HOME, SystemRoot, windir, AGENTAUTH_API_TOKEN } = env;
    expect({ AGENTAUTH_HOME, SystemRoot, windir, AGENTAUTH_API_TOKEN }).toEqual({
      ...{ AGENTAUTH_HOME: context.home(), SystemRoot: "C:\\Windows", windir: "C:\\windir" },
    });
  });

  it("leaves out the variables of Windows elsewhere", async () => {
    const { read } = await start(`env > $folder/env\n${BOUND}`);
    expect(read("env")).not.toMatch(/SystemRoot|windir/);
  });

  it.each([
    ["ends", `${BOUND}`],
    ["says no", `${BOUND}read -r line; printf '{"isHeld":"yes"}\\n'`],
    ["answers with no object", `${BOUND}read -r line; printf '[true]\\n'`],
  ])("does not wait where it %s after that", async (_what, script) => {
    const { listener } = await start(script);
    expect(await listener?.waitInBackground(ORDER)).toBe(false);
  });

  it.each([
    ["ends at once", "exit 1"],
    ["binds nothing", `read -r line; printf '{"redirectUri":1}\\n'`],
    ["answers with no object", "read -r line; printf 'null\\n'"],
  ])("is none where it %s", async (_what, script) => {
    expect((await start(script)).listener).toBeUndefined();
  });

  it("is none where it cannot be started, or the run is no process of its own", async () => {
    const { context } = startRun();
    const redirect = { host: undefined, port: undefined, preferred: undefined };
    expect(await startListener(redirect, { ...context, program: ["/nowhere/at-all", "x"] })).toBeUndefined();
    expect(await startListener(redirect, { ...context, program: undefined })).toBeUndefined();
  });
});
