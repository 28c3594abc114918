import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type EntryFlags, entryOf, sayNextSteps, serverOf } from "../../../../../src/cli/commands/mcp/hosts/run.js";
import type { CommandContext } from "../../../../../src/cli/runtime/context.js";
import { VERSION } from "../../../../../src/http/version.js";
import { temporaryFolder } from "../../../../helpers/folder.js";

const URL_OF_SERVER = "https://mcp.example/mcp";
const WINDOWS = ["C:\\Program Files\\nodejs\\node.exe", "C:\\npm\\agentauth\\bin\\agentauth.cjs"] as const;
/** A run by npx, from a dependency as npm writes it down. */
function npx(dependency?: string): readonly [string, string] {
  const cache = join(temporaryFolder(), "_npx", "62a2");
  mkdirSync(cache, { recursive: true });
  const manifest = JSON.stringify({ dependencies: { agentauth: dependency } });
  if (dependency !== undefined) writeFileSync(join(cache, "package.json"), manifest);
  return ["/usr/bin/node", join(cache, "node_modules", ".bin", "agentauth")];
}
const TARBALL = npx("file:../../../agentauth-0.1.0.tgz");
const REGISTRY = npx("^0.1.0");
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
  const said = (flags: Partial<EntryFlags>, program: CommandContext["program"], profile = "default") => {
    const lines: string[] = [];
    const context = {
      io: { env: {}, say: (line: string) => void lines.push(line) },
      settings: () => ({ profile: { value: profile, source: "x" } }),
      program,
    } as unknown as CommandContext;
    sayNextSteps(
      { url: `${URL_OF_SERVER}?a=$b` },
      { host: "cursor", url: URL_OF_SERVER, ...flags } as EntryFlags,
      context,
    );
    return lines;
  };
  const LOGIN = `log in once, if not done yet: agentauth login '${URL_OF_SERVER}?a=$b'`;
  const starts = (how: string) => `the host starts agentauth ${how}: install it, and add this again`;
  const FROM_CACHE = starts("from a cache that may be emptied");

  it.each<[Partial<EntryFlags>, CommandContext["program"], string[]]>([
    [{}, undefined, []],
    [{}, MACOS, []],
    [{}, REGISTRY, [starts("with npx, which is slow")]],
    ...[
      TARBALL,
      ["node", "/home/ann/.cache/pnpm/dlx/5a/17-1/node_modules/.pnpm/agentauth@0.1.0/bin/agentauth.cjs"] as const,
      ["node", "/tmp/xfs-3f/dlx-4242/node_modules/agentauth/bin/agentauth.cjs"] as const,
      ["node", "C:\\Temp\\bunx-0-agentauth@latest\\node_modules\\agentauth\\bin\\agentauth.cjs"] as const,
    ].map((program): [Partial<EntryFlags>, CommandContext["program"], string[]] => [{}, program, [FROM_CACHE]]),
    [{ command: "x" }, TARBALL, []],
    [{ scope: "project" }, TARBALL, []],
  ])("with %j and %j is to log in, after %j", (flags, program, lines) => {
    expect(said(flags, program)).toEqual([...lines, `${LOGIN} --profile default`]);
  });

  it("is to log in with the profile and the account of the entry", () => {
    expect(said({ accountHint: "ann b" }, undefined, "work")).toEqual([
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
    ["linux", TARBALL, TARBALL],
    ["linux", npx("https://files.example/agentauth-0.1.0.tgz"), undefined],
    ["linux", npx(), undefined],
    ["linux", REGISTRY, ["npx", "--yes", `agentauth@${VERSION}`]],
    ["win32", REGISTRY, ["cmd", "/c", "npx", "--yes", `agentauth@${VERSION}`]],
  ] as const)("on %s names the program that wrote it, %j, by path or by version: %j", (platform, program, words) => {
    const entry = entryOn(platform, program);
    const start = words ?? program ?? [];
    expect([entry["command"], ...(entry["args"] as string[])]).toEqual([
      ...start,
      "mcp",
      "proxy",
      URL_OF_SERVER,
      "--profile",
      "default",
    ]);
    expect(serverOf(entry)).toBe(URL_OF_SERVER);
  });

  it("is no path of this machine in the settings of a project", () => {
    expect(entryOn("win32", WINDOWS, { scope: "project" })["command"]).toBe("agentauth");
  });

  it("is the one that was given", () => {
    expect(entryOn("win32", WINDOWS, { command: "C:\\bin\\agentauth.exe" })["command"]).toBe("C:\\bin\\agentauth.exe");
  });
});
