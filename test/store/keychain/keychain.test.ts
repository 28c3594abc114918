import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { keychainError, limitKeychain, osKeychain } from "../../../src/store/keychain/keychain.js";
import { pendingError } from "../../helpers/captured.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { onSystem } from "../../platform/support.js";
import { folder } from "../stores.js";

const { execPath } = process;
afterEach(() => {
  process.execPath = execPath;
});

describe("a keychain without a time limit", () => {
  const never = () => new Promise<never>(() => undefined);

  it("times out", async () => {
    const limited = limitKeychain({ get: never, set: never }, 20);
    expect(await pendingError(limited.get())).toMatchObject({
      code: "store_failed",
      message: "the keychain did not answer within 0.02 s",
    });
    expect(await pendingError(limited.set("x"))).toMatchObject({ code: "store_failed" });
  });

  it("answers as it did", async () => {
    const written: string[] = [];
    const limited = limitKeychain({ get: async () => "x", set: async (value) => void written.push(value) });
    expect(await limited.get()).toBe("x");
    await limited.set("y");
    expect(written).toEqual(["y"]);
  });
});

describe("what a keychain throws", () => {
  it("becomes an error of ours, once", () => {
    const cause = new Error("no");
    const error = keychainError(cause);
    expect(error).toMatchObject({
      code: "store_failed",
      class: "store",
      message: expect.stringContaining('"no"'),
      cause,
    });
    expect(keychainError(error)).toBe(error);
  });
});

it("a keychain without its optional package says how to install it, and how to do without", async () => {
  const cause = new Error("Cannot find module");
  const resolve = () => {
    throw cause;
  };
  vi.doMock("node:module", () => ({ createRequire: () => ({ resolve }) }));
  vi.resetModules();
  onTestFinished(() => {
    vi.doUnmock("node:module");
    vi.resetModules();
  });
  const fresh = await import("../../../src/store/keychain/keychain.js");
  await expect(fresh.osKeychain("a").get()).rejects.toMatchObject({
    code: "store_failed",
    message: "the keychain needs the optional package @napi-rs/keyring, which is not installed",
    hint:
      "npm install @napi-rs/keyring (with --global if agentauth is installed globally), " +
      "or store logins in files that only you can read: AGENTAUTH_STORE=file",
    cause,
  });
});

describe("a keychain that is asked by a process of this program", () => {
  it.each(["node", "nodejs", "node20", "node-22.1.0", "node.exe", "NODE.EXE", "Node22.exe"])(
    "is asked where the program is %s",
    async (name) => {
      // It is not there, so that nothing starts.
      process.execPath = join(folder(), "none", name);
      const keychain = osKeychain("a", { package: "/none" });
      const failed = { code: "store_failed", message: "the keychain could not be queried: its helper process exited" };
      for (const work of [keychain.get(), keychain.set("x")]) expect(await pendingError(work)).toMatchObject(failed);
    },
  );

  it.each(["electron", "mynode", "node-red", "nodes", "node.exe.old", "node.com", "my node"])(
    "is not asked where the program is %s",
    async (name) => {
      process.execPath = `/opt/${name}`;
      expect(await pendingError(osKeychain("a", { package: "/none" }).get())).toMatchObject({
        message: `the keychain can be used where Node runs the program, not "/opt/${name}"`,
      });
    },
  );
});

describe.skipIf(ON_WINDOWS)("the reply of a process that asks the keychain", () => {
  /** A keychain whose process runs these words of a shell. */
  function replying(words: string, timeoutMs?: number, env?: Record<string, string>) {
    process.execPath = join(folder(), "node");
    writeFileSync(process.execPath, `#!/bin/sh\n${words}\n`, { mode: 0o700 });
    return osKeychain("a", { package: "/none", timeoutMs, env: env && { PATH: process.env["PATH"], ...env } });
  }

  it("comes from the program, which gets the secret by its input alone", async () => {
    const leaving = process.listenerCount("exit");
    const { set } = replying(
      `cat > request; pwd > where; printf '%s\\n' "$#" "$1" "$2" > words; printf %s "$3" > program; echo "$ONLY $HOME" > env
      echo noise >&2; echo '{"outcome":"done"}'`,
      undefined,
      { ONLY: "this" },
    );
    await set("the secret");
    expect(process.listenerCount("exit")).toBe(leaving);
    const at = dirname(process.execPath);
    const [request = "", where, words, program, env] = ["request", "where", "words", "program", "env"].map((name) =>
      readFileSync(join(at, name), "utf8"),
    );
    expect(JSON.parse(request)).toEqual({ package: "/none", service: "agentauth", account: "a", value: "the secret" });
    expect([where, words, env]).toEqual([`${at}\n`, "3\n--input-type=commonjs\n-e\n", "this \n"]);
    expect(program).toContain("new keyring.Entry(");
  });

  const saying = (reply: unknown) => replying(`echo '${JSON.stringify(reply)}'`);

  it.each([
    ["no entry", { outcome: "done" }, undefined],
    ["an entry", { outcome: "done", value: "x" }, "x"],
    ["an entry that is no text", { outcome: "done", value: 7 }, undefined],
  ])("may be %s", async (_what, reply, value) => {
    expect(await saying(reply).get()).toBe(value);
  });

  it.each<[string, unknown]>([
    ["that is none", []],
    ["of another version", { outcome: "other" }],
    ["that the package is unusable", { outcome: "unusable", message: "no native binding" }],
    ...[
      "Platform failure: DBus error: Failed to connect",
      "a d-bus ERROR",
      "The name org.freedesktop.secrets was not provided",
      "Secret Service: no result found",
      "Couldn't access platform storage",
      "it is locked",
      "unlock it",
      "the prompt was dismissed",
      "access denied",
      "canceled",
      "Cancelled",
      "no user interaction",
      "a wrong passphrase",
      "would block for ever",
      "a padlock",
    ].map((message): [string, unknown] => [
      `that it is refused with ${JSON.stringify(message)}`,
      { outcome: "refused", message },
    ]),
  ])("%s has an error of its own", async (_what, reply) => {
    expect(await pendingError(saying(reply).get())).toMatchObject({ code: "store_failed", class: "store" });
  });

  it.each([
    ["darwin", "security unlock-keychain, and run the command again"],
    ["linux", "unlock it, and run the command again"],
  ] as const)("has the advice for %s where it is locked", async (name, advice) => {
    onSystem({ name });
    const reply = saying({ outcome: "refused", message: "it is locked" });
    await expect(reply.get()).rejects.toMatchObject({ hint: expect.stringContaining(advice) });
  });

  it("is waited for as long as a call may take", async () => {
    expect(await pendingError(replying("exec sleep 60", 20).get())).toMatchObject({ code: "store_failed" });
  });
});
