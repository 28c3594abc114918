import { describe, expect, it } from "vitest";
import { type EntryFlags, entryOf, originOf, sayNextSteps } from "../../../../../src/cli/commands/mcp/hosts/entry.js";
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

describe("what a user does next", () => {
  const said = (
    flags: Partial<EntryFlags>,
    env: Record<string, string>,
    program: CommandContext["program"],
    profile?: string,
  ) => {
    const lines: string[] = [];
    const context = {
      io: { env: {}, say: (line: string) => void lines.push(line) },
      settings: () => ({ profile: { value: profile ?? "default", source: profile === "default" ? "--profile" : "x" } }),
      program,
    } as unknown as CommandContext;
    const options = { host: "claude-code", url: URL_OF_SERVER, ...flags } as EntryFlags;
    sayNextSteps({ url: `${URL_OF_SERVER}?a=$b`, env } as never, options, context);
    return lines;
  };
  const LOGIN = `log in once, if not done yet: agentauth login '${URL_OF_SERVER}?a=$b'`;
  const NPX_COSTS =
    "the host starts agentauth with npx, which takes half a second more each time: install it, and add this again";
  const STORE = { AGENTAUTH_HOME: "/h", AGENTAUTH_STORE: "file" };
  const HELPER = { style: "headers-helper" } as const;

  it.each<[Partial<EntryFlags>, Record<string, string>, CommandContext["program"], string | undefined, string[]]>([
    [{}, {}, undefined, undefined, [LOGIN]],
    [{}, STORE, MACOS, undefined, [LOGIN]],
    [HELPER, {}, MACOS, undefined, [LOGIN]],
    [
      HELPER,
      STORE,
      MACOS,
      undefined,
      ["start the host with the same AGENTAUTH_HOME and AGENTAUTH_STORE as now", LOGIN],
    ],
    [{}, {}, NPX, undefined, [NPX_COSTS, LOGIN]],
    [{}, {}, NPX_OF_WINDOWS, undefined, [NPX_COSTS, LOGIN]],
    [{ command: "x" }, {}, NPX, undefined, [LOGIN]],
    [{ accountHint: "ann" }, {}, undefined, "work", [`${LOGIN} --profile work --account-hint ann`]],
    [{}, {}, undefined, "default", [`${LOGIN} --profile default`]],
  ])("with %j, %j, %j and the profile %s", (flags, env, program, profile, lines) => {
    expect(said(flags, env, program, profile)).toEqual(lines);
  });
});

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
