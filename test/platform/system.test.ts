import { spawn } from "node:child_process";
import crossSpawn from "cross-spawn";
import { describe, expect, it } from "vitest";
import { createIo } from "../../src/cli/io/io.js";
import { loadSpawn, lookupByPlatform, shellOf, withoutOurs, withVariable } from "../../src/platform/system.js";
import { pasting } from "../../src/redact.js";
import { onSystem } from "./support.js";

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

describe("what starts programs", () => {
  it("finds scripts of cmd.exe and quotes for it on Windows, and is Node's own elsewhere", async () => {
    onSystem({ name: "win32" });
    expect(await loadSpawn()).toBe(crossSpawn);
    for (const name of ["linux", "darwin"] as const) {
      onSystem({ name });
      expect(await loadSpawn()).toBe(spawn);
    }
  });
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
    expect(shellOf(env)).toBe(shell);
  });

  it("is what the messages of a run are for", () => {
    onSystem({ name: "win32" });
    createIo({ ...process, env: { PROMPT: "$P$G" } } as never);
    expect(pasting.shell).toBe("cmd");
  });
});
