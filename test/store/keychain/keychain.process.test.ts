import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type AgentAuthError, isAgentAuthError } from "../../../src/errors.js";
import { type Keychain, osKeychain } from "../../../src/store/keychain/keychain.js";
import { until } from "../../helpers/server.js";
import { ON_LINUX } from "../../helpers/systems.js";
import { folder } from "../stores.js";

/**
 * A package in the place of the real one, called as that is: by a separate process.
 *
 * @param body of the entry's class
 */
function packageWith(body: string, rest = "exports.LinuxStore = {};"): { path: string; at: string } {
  const at = folder();
  const path = join(at, "index.js");
  const head = `const { existsSync, readFileSync, writeFileSync } = require("node:fs"); const at = ${JSON.stringify(at)};`;
  writeFileSync(path, `${head}\nexports.Entry = class { ${body} };\n${rest}\n`);
  return { path, at };
}

const IN_A_FILE = `
  constructor(...asked) {
    writeFileSync(at + "/asked", JSON.stringify({ asked, argv: process.argv, execArgv: process.execArgv, env: process.env }));
  }
  getPassword() { return existsSync(at + "/value") ? readFileSync(at + "/value", "utf8") : null; }
  setPassword(value) { writeFileSync(at + "/value", value); }
`;

const throwing = (message: string) => packageWith(`getPassword() { throw new Error(${JSON.stringify(message)}); }`);

async function failureOf(keychain: Keychain): Promise<AgentAuthError> {
  const error = await keychain.get().then(
    () => new Error("it answered"),
    (thrown: unknown) => thrown,
  );
  if (!isAgentAuthError(error)) throw error;
  expect(error).toMatchObject({ code: "store_failed", class: "store" });
  return error;
}

describe("the keychain", () => {
  it("gives back what was written, and says when there is nothing", async () => {
    const keychain = osKeychain("store-key 1", { package: packageWith(IN_A_FILE).path });
    expect(await keychain.get()).toBeUndefined();
    await keychain.set('one "key"\n');
    expect(await keychain.get()).toBe('one "key"\n');
  });

  it("is asked for the entry of this account, on Linux in the Secret Service alone", async () => {
    const { path, at } = packageWith(IN_A_FILE);
    await osKeychain("store-key 1", { package: path }).get();
    const { asked } = JSON.parse(readFileSync(join(at, "asked"), "utf8")) as { asked: unknown };
    expect(asked).toEqual(["agentauth", "store-key 1", { linux: { store: "secret-service" } }]);
  });

  it("gets the secret in neither arguments nor environment", async () => {
    const { path, at } = packageWith(IN_A_FILE);
    await osKeychain("store-key 1", { package: path }).set("the-secret-itself");
    expect(readFileSync(join(at, "value"), "utf8")).toBe("the-secret-itself");
    const { asked: _asked, ...visible } = JSON.parse(readFileSync(join(at, "asked"), "utf8")) as { asked: unknown };
    expect(JSON.stringify(visible)).not.toContain("the-secret-itself");
  });

  it("is looked for in the environment that is given", async () => {
    const { path, at } = packageWith(IN_A_FILE);
    await osKeychain("store-key 1", { package: path, env: { DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere" } }).get();
    const { env } = JSON.parse(readFileSync(join(at, "asked"), "utf8")) as { env: unknown };
    expect(env).toMatchObject({ DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere" });
    expect(Object.keys(env as object)).not.toContain("HOME");
  });
});

describe("a keychain that cannot be used", () => {
  it.each([
    [
      "on a bus that is not there",
      "Platform failure: DBus error: Failed to connect to socket /run/x",
      /no keychain here/,
    ],
    [
      "on a bus without a Secret Service",
      "Platform failure: DBus error: The name org.freedesktop.secrets was not provided by any .service files",
      /no keychain here/,
    ],
    [
      "that is locked",
      "Couldn't access platform storage: Secret Service: unlock prompt was dismissed",
      /locked, or access to it was denied/,
    ],
    [
      "whose question was answered with no",
      "Platform failure: User canceled the operation.",
      /access to it was denied/,
    ],
    ["that may not ask", "Platform failure: User interaction is not allowed.", /access to it was denied/],
    ["without a keyring in it", "Couldn't access platform storage: Secret Service: no result found", /has no keyring/],
    ["for a reason of its own", "Platform failure: would block for ever", /^the keychain cannot be used: /],
  ])("%s has its own message, with the way out", async (_what, message, reported) => {
    const error = await failureOf(osKeychain("store-key 1", { package: throwing(message).path }));
    expect(error.message).toMatch(reported);
    expect(error.message).toContain(JSON.stringify(message));
    expect(error.hint).toMatch(/AGENTAUTH_STORE=file$/);
  });

  it("shows nothing strange of what it says", async () => {
    const error = await failureOf(osKeychain("store-key 1", { package: throwing("\u001b[2J locked").path }));
    expect(error.message).toContain('"\\e[2J locked"');
  });

  it("says which package to install when its binary for this machine is missing", async () => {
    const { path } = packageWith("", 'throw new Error("Cannot find native binding. npm has a bug\\nmore");');
    const error = await failureOf(osKeychain("store-key 1", { package: path }));
    expect(error.message).toMatch(/@napi-rs\/keyring cannot be used: "Cannot find native binding\. npm has a bug"$/);
    expect(error.hint).toMatch(/^npm install @napi-rs\/keyring@\d+\.\d+\.\d+ .*AGENTAUTH_STORE=file$/);
  });

  it.runIf(ON_LINUX)("refuses a version that would use the kernel's keyring instead", async () => {
    const { path, at } = packageWith(IN_A_FILE, "");
    const error = await failureOf(osKeychain("store-key 1", { package: path }));
    expect(error.message).toContain("it is older than 2.1.0");
    expect(existsSync(join(at, "asked"))).toBe(false);
  });

  it("says so when its helper process exits without a reply", async () => {
    const { path } = packageWith("getPassword() { process.exit(3); }");
    expect((await failureOf(osKeychain("store-key 1", { package: path }))).message).toMatch(/helper process exited$/);
  });

  it("times out, also where it blocks the whole process, which is killed", async () => {
    const { path, at } = packageWith(
      'getPassword() { writeFileSync(at + "/pid", String(process.pid)); for (;;) { /* as the native calls do */ } }',
    );
    const error = await failureOf(osKeychain("store-key 1", { package: path, timeoutMs: 1500 }));
    expect(error.message).toBe("the keychain did not answer within 1.5 s");
    expect(error.hint).toMatch(/unlock it.*AGENTAUTH_STORE=file$/);
    const pid = Number(readFileSync(join(at, "pid"), "utf8"));
    await until(() => !isRunning(pid));
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
