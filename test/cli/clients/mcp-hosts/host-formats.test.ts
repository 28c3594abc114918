import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesOf, HOST_SCOPES, type HostMachine, settingsPath } from "../../../../src/cli/clients/mcp-hosts/host.js";
import { MCP_HOSTS, WRITABLE_HOSTS } from "../../../../src/cli/clients/mcp-hosts/hosts.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { DOCUMENTED } from "./host-formats.js";

const PLATFORMS = ["linux", "darwin", "win32"] as const;
const machine = (platform: string, env: HostMachine["env"] = {}): HostMachine => {
  return { platform, env, home: "/home/me", folder: "/home/me/project" };
};

describe.each(Object.entries(MCP_HOSTS))("the row of %s", (name, host) => {
  const documented = DOCUMENTED[name];

  it("has the entry that its documentation has", () => {
    const entry = host.proxy("example", { command: "npx", args: ["-y", "pkg"], env: { A: "b" } });
    expect(documented?.docs).toMatch(/^https:\/\//);
    expect(documented?.projectDocs ?? "https://").toMatch(/^https:\/\//);
    expect(documented?.source ?? "https://").toMatch(/^https:\/\//);
    expect({ [host.key]: { example: entry } }).toEqual(documented?.settings);
  });

  it.each(PLATFORMS)("has the files that its documentation has, on %s", (platform) => {
    for (const scope of HOST_SCOPES) {
      const file = documented?.files[`${scope} ${platform}`] ?? documented?.files[`${scope} *`];
      const path = file?.replace(/^~/, "/home/me").replace(/^(?!\/)/, "/home/me/project/");
      expect(settingsPath(host, scope, machine(platform))).toBe(path);
    }
  });
});

describe("the files of hosts", () => {
  it.each(PLATFORMS)("are all that they read, the preferred one first, on %s", (platform) => {
    const files = Object.entries(MCP_HOSTS).map(([name, host]) => [
      name,
      ...HOST_SCOPES.flatMap((scope) => filesOf(host, scope, machine(platform))),
    ]);
    expect(files).toMatchSnapshot();
  });

  it("follow the variables that move them, if these are absolute paths", () => {
    const file = (host: keyof typeof MCP_HOSTS, platform: string, env: HostMachine["env"]) => {
      const row = MCP_HOSTS[host];
      return row && filesOf(row, "user", machine(platform, env))[0];
    };
    expect(file("codex", "linux", { CODEX_HOME: "/c" })).toBe("/c/config.toml");
    expect(file("codex", "linux", { CODEX_HOME: "c" })).toBe("/home/me/.codex/config.toml");
    expect(file("claude-code", "linux", { CLAUDE_CONFIG_DIR: "/c" })).toBe("/c/.claude.json");
    expect(file("copilot-cli", "linux", { COPILOT_HOME: "/c" })).toBe("/c/mcp-config.json");
    expect(file("vscode", "linux", { XDG_CONFIG_HOME: "/x" })).toBe("/x/Code/User/mcp.json");
    expect(file("vscode", "win32", { APPDATA: "/a" })).toBe("/a/Code/User/mcp.json");
    expect(file("vscode", "aix", {})).toBeUndefined();
  });

  it("of Claude Desktop are those of its package on Windows, once it is there", () => {
    const local = temporaryFolder();
    const roaming = join(local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming");
    const host = MCP_HOSTS["claude-desktop"];
    const path = () => host && settingsPath(host, "user", machine("win32", { LOCALAPPDATA: local }));
    expect(path()).toBe(join("/home/me/AppData/Roaming/Claude/claude_desktop_config.json"));
    mkdirSync(join(roaming, "Claude"), { recursive: true });
    expect(path()).toBe(join(roaming, "Claude", "claude_desktop_config.json"));
  });

  it("are known for every host but the one that has none", () => {
    expect(Object.keys(MCP_HOSTS).filter((name) => !WRITABLE_HOSTS.includes(name))).toEqual(["jetbrains-ai-assistant"]);
    expect(Object.keys(DOCUMENTED)).toEqual(Object.keys(MCP_HOSTS));
    const page = readFileSync(new URL("../../../../docs/mcp-hosts.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name);
    expect(rows).toEqual(Object.keys(MCP_HOSTS));
  });
});
