import { describe, expect, it } from "vitest";
import { type EntryFlags, entryOf, originOf } from "../../../../../src/cli/commands/mcp/hosts/entry.js";
import type { CommandContext } from "../../../../../src/cli/runtime/context.js";

const URL_OF_SERVER = "https://mcp.example/mcp";
const WINDOWS = ["C:\\Program Files\\nodejs\\node.exe", "C:\\npm\\agentauth\\bin\\agentauth.cjs"] as const;
const NPX = ["/usr/bin/node", "/home/ann/.npm/_npx/62a2/node_modules/agentauth/bin/agentauth.cjs"] as const;
const NPX_OF_WINDOWS = [
  "C:\\node.exe",
  "C:\\npm-cache\\_npx\\62a2\\node_modules\\agentauth\\bin\\agentauth.cjs",
] as const;
const MACOS = ["/opt/homebrew/bin/node", "/opt/homebrew/lib/agentauth/bin/agentauth.cjs"] as const;

/** The entry of Claude Code that a platform gets. */
function entryOn(platform: string, program: CommandContext["program"], flags: Partial<EntryFlags> = {}) {
  const context = {
    io: { env: {} },
    settings: () => ({ profile: { value: "default", source: "settings file" } }),
    machine: { platform, folder: "/" },
    program,
  } as unknown as CommandContext;
  return entryOf({ host: "claude-code", url: URL_OF_SERVER, ...flags } as EntryFlags, context).entry;
}

describe("the entry of a host that starts programs without a shell", () => {
  it.each([
    ["win32", WINDOWS, [...WINDOWS]],
    ["darwin", MACOS, [...MACOS]],
    ["linux", MACOS, ["agentauth"]],
    ["win32", undefined, ["agentauth"]],
    ["linux", NPX, ["npx", "--yes", "agentauth"]],
    ["win32", NPX_OF_WINDOWS, ["cmd", "/c", "npx", "--yes", "agentauth"]],
  ] as const)(
    "on %s names Node and our script where it finds neither, and no file of npx: %j",
    (platform, program, words) => {
      const entry = entryOn(platform, program);
      expect([entry["command"], ...(entry["args"] as string[])]).toEqual([...words, "mcp", "proxy", URL_OF_SERVER]);
      expect(originOf(entry)).toEqual({ url: URL_OF_SERVER, isByAgentauth: true });
    },
  );

  it("names no path of this machine in the settings of a project", () => {
    expect(entryOn("win32", WINDOWS, { scope: "project" })["command"]).toBe("agentauth");
  });

  it("names the command that was given", () => {
    expect(entryOn("win32", WINDOWS, { command: "C:\\bin\\agentauth.exe" })["command"]).toBe("C:\\bin\\agentauth.exe");
  });

  it("has a headers command that the shell of the host can run", () => {
    const style = { style: "headers-helper" } as const;
    const end = `token ${URL_OF_SERVER} --format headers-json`;
    const windows = entryOn("win32", WINDOWS, style);
    expect(windows["headersHelper"]).toBe(`agentauth ${end}`);
    const macos = entryOn("darwin", MACOS, style);
    expect(macos["headersHelper"]).toBe(`${MACOS.join(" ")} ${end}`);
    for (const entry of [windows, macos]) expect(originOf(entry).isByAgentauth).toBe(true);
  });
});
