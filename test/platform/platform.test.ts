import { spawn } from "node:child_process";
import crossSpawn from "cross-spawn";
import { describe, expect, it } from "vitest";
import type { Subject } from "../../src/cli/commands/doctor/check.js";
import { STORE_CHECKS } from "../../src/cli/commands/doctor/store-checks.js";
import { ACCESS_TEXT, homeAccess } from "../../src/cli/config/home-access.js";
import { createIo } from "../../src/cli/io/io.js";
import {
  detectShell,
  loadSpawn,
  lookupByPlatform,
  othersWithAccess,
  retryWhileBusy,
  withoutOurs,
  withVariable,
} from "../../src/platform.js";
import { pasting } from "../../src/redact.js";
import { temporaryFolder } from "../helpers/cli.js";
import { onSystem } from "./support.js";

const failure = (code: string) => Object.assign(new Error(code), { code });

/** Work that fails a number of times before it succeeds. */
function failing(times: number, code: string) {
  let calls = 0;
  return () => {
    if (calls++ < times) throw failure(code);
    return calls;
  };
}

describe("a file that another program has open", () => {
  it.each(["EPERM", "EACCES", "EBUSY"])("is tried again on Windows: %s", (code) => {
    onSystem({ name: "win32" });
    expect(retryWhileBusy(failing(3, code))).toBe(4);
  });

  it("is not waited for without end", () => {
    onSystem({ name: "win32" });
    expect(() => retryWhileBusy(failing(Number.POSITIVE_INFINITY, "EBUSY"))).toThrow("EBUSY");
  });

  it.each([
    ["win32", "ENOENT"],
    ["linux", "EBUSY"],
    ["darwin", "EPERM"],
  ] as const)("is no reason to wait on %s for %s", (name, code) => {
    onSystem({ name });
    expect(() => retryWhileBusy(failing(1, code))).toThrow(code);
  });
});

const ME = "S-1-5-21-1-2-3-1001";
const USERS = "S-1-5-32-545";
const listOf = (...sids: string[]) => `${[ME, ...sids].join("\r\n")}\r\n`;

describe("a folder's list of access", () => {
  it.each([
    ["the user and the system", listOf(ME, "S-1-5-18", "S-1-5-32-544", "S-1-3-0"), []],
    ["others", listOf(ME, USERS, "S-1-1-0", USERS), [USERS, "S-1-1-0"]],
    ["no user, which means that it was not read", listOf(), undefined],
    ["nothing", undefined, undefined],
  ])("names %s", (_whom, answer, others) => {
    onSystem({ name: "win32", run: () => answer });
    expect(othersWithAccess("C:\\x")).toEqual(others);
  });

  it.each([
    ["ok", listOf(ME), "readable by you and the system alone"],
    ["warning", listOf(ME, USERS), `can be read by other accounts: ${USERS}`],
    ["ok", undefined, "is not checked"],
  ])("is what doctor reports as %s", (level, answer, text) => {
    onSystem({ name: "win32", run: () => answer });
    const finding = STORE_CHECKS.home({ home: { value: temporaryFolder(), source: "AGENTAUTH_HOME" } } as Subject);
    expect(JSON.stringify(finding)).toContain(text);
    expect(JSON.stringify(finding)).toContain(level);
  });
});

it("on Windows nothing is claimed about a folder that was not checked", () => {
  onSystem({ name: "win32" });
  expect(homeAccess(temporaryFolder())).toBe("unchecked");
  expect(ACCESS_TEXT.unchecked).not.toMatch(/alone|private/);
});

const ENV = { Path: "C:\\bin", Https_Proxy: "http://proxy", agentauth_token: "old" };

describe("the environment", () => {
  it("is looked up without regard to case on Windows alone, and keeps its names", () => {
    onSystem({ name: "win32" });
    const env = lookupByPlatform(Object.freeze({ ...ENV })) as Record<string, string | undefined>;
    expect([env["PATH"], env["HTTPS_PROXY"], env["https_proxy"], env["NONE"]]).toEqual([
      "C:\\bin",
      "http://proxy",
      "http://proxy",
      undefined,
    ]);
    expect({ ...env }).toEqual(ENV);
    onSystem({ name: "linux" });
    expect((lookupByPlatform(ENV) as Record<string, string | undefined>)["PATH"]).toBeUndefined();
  });

  it("of a run is looked up in this way", () => {
    onSystem({ name: "win32" });
    const { env } = createIo({ ...process, env: { Agentauth_Home: "C:\\home", Empty: "" } } as never);
    expect([env["AGENTAUTH_HOME"], env["EMPTY"]]).toEqual(["C:\\home", undefined]);
  });

  it("gets a variable once, whatever the spelling of another one, on Windows", () => {
    onSystem({ name: "win32" });
    const { agentauth_token: _, ...others } = ENV;
    expect(withVariable(ENV, "AGENTAUTH_TOKEN", "new")).toEqual({ ...others, AGENTAUTH_TOKEN: "new" });
    onSystem({ name: "darwin" });
    expect(withVariable(ENV, "AGENTAUTH_TOKEN", "new")).toEqual({ ...ENV, AGENTAUTH_TOKEN: "new" });
  });

  it("has none of our variables for programs that need none, in any spelling", () => {
    expect(withoutOurs({ AGENTAUTH_API_TOKEN: "x", Agentauth_home: "y", PATH: "/bin" })).toEqual({ PATH: "/bin" });
  });
});

it("what starts programs finds scripts of cmd.exe and quotes for it on Windows, and is Node's own elsewhere", async () => {
  onSystem({ name: "win32" });
  expect(await loadSpawn()).toBe(crossSpawn);
  for (const name of ["linux", "darwin"] as const) {
    onSystem({ name });
    expect(await loadSpawn()).toBe(spawn);
  }
});

describe("the shell of the user", () => {
  it.each([
    ["linux", { PSModulePath: "C:\\Users\\a\\Modules" }, "sh"],
    ["win32", {}, "powershell"],
    ["win32", { PROMPT: "$P$G", PSModulePath: "C:\\Program Files\\WindowsPowerShell\\Modules" }, "cmd"],
    ["win32", { PROMPT: "$P$G", PSModulePath: "C:\\Users\\a\\Documents\\PowerShell\\Modules;C:\\x" }, "powershell"],
    ["win32", { SHELL: "/usr/bin/bash", PROMPT: "$P$G" }, "sh"],
  ] as const)("on %s with %o is %s", (name, env, shell) => {
    onSystem({ name });
    expect(detectShell(env)).toBe(shell);
  });

  it("is what the messages of a run are for", () => {
    onSystem({ name: "win32" });
    createIo({ ...process, env: { PROMPT: "$P$G" } } as never);
    expect(pasting.shell).toBe("cmd");
  });
});
