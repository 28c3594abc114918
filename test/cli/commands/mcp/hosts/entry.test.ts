import { describe, expect, it } from "vitest";
import {
  buildEntry,
  type EntryFlags,
  readServer,
  sayNextSteps,
} from "../../../../../src/cli/commands/mcp/hosts/run.js";
import type { CommandContext } from "../../../../../src/cli/runtime/context.js";

const URL_OF_SERVER = "https://mcp.example/mcp";
const WINDOWS = ["C:\\Program Files\\nodejs\\node.exe", "C:\\npm\\agentauth\\bin\\agentauth.cjs"] as const;
const NPX = ["/usr/bin/node", "/home/ann/.npm/_npx/62a2/node_modules/.bin/agentauth"] as const;
const MACOS = ["/opt/homebrew/bin/node", "/opt/homebrew/lib/agentauth/bin/agentauth.cjs"] as const;

/** The entry of Claude Code that a platform gets. */
function entryOn(platform: string, program: CommandContext["program"], flags: Partial<EntryFlags> = {}) {
  const context = {
    io: { env: {} },
    settings: () => ({ profile: { value: "default", source: "settings file" } }),
    machine: { platform, folder: "/" },
    program,
  } as unknown as CommandContext;
  return buildEntry({ host: "claude-code", url: URL_OF_SERVER, ...flags } as EntryFlags, context).entry;
}

describe("what a user does next", () => {
  const said = async (
    flags: Partial<EntryFlags>,
    program: CommandContext["program"],
    profile = "default",
    logins?: object[],
  ) => {
    const lines: string[] = [];
    const context = {
      io: { env: {}, say: (line: string) => void lines.push(line) },
      settings: () => ({ profile: { value: profile, source: "x" } }),
      program,
      agent: async () => ({
        status: async () => {
          if (logins !== undefined) return logins;
          throw new Error("the store cannot be read");
        },
      }),
    } as unknown as CommandContext;
    await sayNextSteps(
      { url: `${URL_OF_SERVER}?a=$b` },
      { host: "cursor", url: URL_OF_SERVER, ...flags } as EntryFlags,
      context,
    );
    return lines;
  };
  const LOGIN = `log in once: agentauth login '${URL_OF_SERVER}?a=$b'`;
  const FROM_CACHE = "the host starts agentauth from a cache that may be emptied: install it, and add this again";

  it.each<[Partial<EntryFlags>, CommandContext["program"], string[]]>([
    [{}, undefined, []],
    [{}, MACOS, []],
    ...[
      NPX,
      ["node", "/home/ann/.cache/pnpm/dlx/5a/17-1/node_modules/.pnpm/agentauth@0.1.0/bin/agentauth.cjs"] as const,
      ["node", "/tmp/xfs-3f/dlx-4242/node_modules/agentauth/bin/agentauth.cjs"] as const,
      ["node", "C:\\Temp\\bunx-0-agentauth@latest\\node_modules\\agentauth\\bin\\agentauth.cjs"] as const,
    ].map((program): [Partial<EntryFlags>, CommandContext["program"], string[]] => [{}, program, [FROM_CACHE]]),
    [{ command: "x" }, NPX, []],
    [{ scope: "project" }, NPX, []],
  ])("with %j and %j is to log in, after %j", async (flags, program, lines) => {
    expect(await said(flags, program)).toEqual([...lines, `${LOGIN} --profile default`]);
  });

  it("is nothing after a login", async () => {
    const of = (state: string, refreshable: boolean) => said({}, undefined, "default", [{ state, refreshable }]);
    expect(await Promise.all([of("valid", false), of("expired", true)])).toEqual([[], []]);
    expect(await of("expired", false)).toEqual([`${LOGIN} --profile default`]);
  });

  it("is to log in with the profile and the account of the entry", async () => {
    expect(await said({ accountHint: "ann b" }, undefined, "work")).toEqual([
      `${LOGIN} --profile work --account-hint 'ann b'`,
    ]);
  });
});

describe("the command of an entry", () => {
  it.each([
    ["win32", WINDOWS, WINDOWS],
    ["darwin", MACOS, MACOS],
    ["linux", MACOS, MACOS],
    ["linux", undefined, ["agentauth"]],
    ["linux", NPX, NPX],
  ] as const)("on %s names the program that wrote it, %j, by its paths: %j", (platform, program, words) => {
    const entry = entryOn(platform, program);
    expect([entry["command"], ...(entry["args"] as string[])]).toEqual([
      ...words,
      "mcp",
      "proxy",
      URL_OF_SERVER,
      "--profile",
      "default",
    ]);
    expect(readServer(entry)).toBe(URL_OF_SERVER);
  });

  it("is no path of this machine in the settings of a project", () => {
    expect(entryOn("win32", WINDOWS, { scope: "project" })["command"]).toBe("agentauth");
  });

  it("is the one that was given", () => {
    expect(entryOn("win32", WINDOWS, { command: "C:\\bin\\agentauth.exe" })["command"]).toBe("C:\\bin\\agentauth.exe");
  });
});
