import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  HOST_SCOPES,
  type HostMachine,
  MCP_HOSTS,
  settingsFiles,
  settingsPath,
} from "../../../../src/cli/clients/hosts.js";
import { temporaryFolder } from "../../../helpers/folder.js";

const PLATFORMS = ["linux", "darwin", "win32"] as const;
const machine = (platform: string, env: HostMachine["env"] = {}): HostMachine => {
  return { platform, env, home: "/home/me", folder: "/home/me/project" };
};

const server = { command: "npx", args: ["-y", "pkg"], env: { A: "b" } };
const stdio = { type: "stdio", ...server };
const CODE = { linux: "~/.config", darwin: "~/Library/Application Support", win32: "~/AppData/Roaming" };

/** What the documentation of each host has: the entry below its key, and the files of the user and of a project. */
const DOCUMENTED: Readonly<Record<string, [docs: string, settings: object, user: string | object, project?: string]>> =
  {
    antigravity: [
      "https://antigravity.google/docs/mcp",
      { mcpServers: server },
      "~/.gemini/config/mcp_config.json",
      ".agents/mcp_config.json",
    ],
    "claude-code": ["https://code.claude.com/docs/en/mcp", { mcpServers: stdio }, "~/.claude.json", ".mcp.json"],
    "claude-desktop": [
      "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
      { mcpServers: server },
      {
        darwin: "~/Library/Application Support/Claude/claude_desktop_config.json",
        win32: "~/AppData/Roaming/Claude/claude_desktop_config.json",
      },
    ],
    cline: [
      "https://docs.cline.bot/getting-started/config",
      { mcpServers: server },
      "~/.cline/data/settings/cline_mcp_settings.json",
    ],
    codex: ["https://developers.openai.com/codex/mcp", { mcp_servers: server }, {}],
    cursor: ["https://cursor.com/docs/context/mcp", { mcpServers: server }, "~/.cursor/mcp.json", ".cursor/mcp.json"],
    "gemini-cli": [
      "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
      { mcpServers: server },
      "~/.gemini/settings.json",
      ".gemini/settings.json",
    ],
    goose: [
      "https://block.github.io/goose/docs/getting-started/using-extensions",
      {
        extensions: {
          type: "stdio",
          name: "example",
          enabled: true,
          cmd: "npx",
          args: ["-y", "pkg"],
          envs: { A: "b" },
          timeout: 300,
        },
      },
      {},
    ],
    opencode: [
      "https://opencode.ai/docs/mcp-servers",
      { mcp: { type: "local", command: ["npx", "-y", "pkg"], enabled: true, environment: { A: "b" } } },
      "~/.config/opencode/opencode.json",
      "opencode.json",
    ],
    vscode: [
      "https://code.visualstudio.com/docs/copilot/customization/mcp-servers",
      { servers: stdio },
      Object.fromEntries(Object.entries(CODE).map(([platform, folder]) => [platform, `${folder}/Code/User/mcp.json`])),
      ".vscode/mcp.json",
    ],
    windsurf: [
      "https://docs.windsurf.com/windsurf/cascade/mcp",
      { mcpServers: server },
      "~/.codeium/windsurf/mcp_config.json",
    ],
    zed: [
      "https://zed.dev/docs/ai/mcp",
      { context_servers: server },
      {
        linux: "~/.config/zed/settings.json",
        darwin: "~/.config/zed/settings.json",
        win32: "~/AppData/Roaming/Zed/settings.json",
      },
      ".zed/settings.json",
    ],
  };

describe.each(Object.entries(MCP_HOSTS))("the row of %s", (name, host) => {
  const [docs, settings, user, project] = DOCUMENTED[name] ?? ["", {}, {}];

  it("has the entry that its documentation has", () => {
    expect(docs).toMatch(/^https:\/\//);
    expect({ [host.key]: host.proxy("example", server) }).toEqual(settings);
    expect(host.proxy("example", { ...server, env: {} })).not.toHaveProperty("env.A");
  });

  it.each(PLATFORMS)("has the files that its documentation has, on %s", (platform) => {
    const files = { user: typeof user === "string" ? user : (user as Record<string, string>)[platform], project };
    for (const scope of HOST_SCOPES) {
      const path = files[scope]?.replace(/^~/, "/home/me").replace(/^(?!\/)/, "/home/me/project/");
      expect(settingsPath(host, scope, machine(platform))).toBe(path);
    }
  });
});

describe("the files of hosts", () => {
  it("follow the variables that move them, if these are absolute paths", () => {
    const file = (host: string, platform: string, env: HostMachine["env"]) => {
      const row = MCP_HOSTS[host];
      return row && settingsFiles(row, "user", machine(platform, env))[0];
    };
    expect(file("claude-code", "linux", { CLAUDE_CONFIG_DIR: "/c" })).toBe("/c/.claude.json");
    expect(file("claude-code", "linux", { CLAUDE_CONFIG_DIR: "c" })).toBe("/home/me/.claude.json");
    expect(file("vscode", "linux", { XDG_CONFIG_HOME: "/x" })).toBe("/x/Code/User/mcp.json");
    expect(file("vscode", "win32", { APPDATA: "/a" })).toBe("/a/Code/User/mcp.json");
    expect(file("zed", "linux", { XDG_CONFIG_HOME: "/x" })).toBe("/x/zed/settings.json");
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

  it("that exist come before the preferred one", () => {
    const home = temporaryFolder();
    const host = MCP_HOSTS["cline"];
    const files = host ? settingsFiles(host, "user", { ...machine("linux"), home }) : [];
    const path = () => host && settingsPath(host, "user", { ...machine("linux"), home });
    expect(path()).toBe(files[0]);
    mkdirSync(dirname(files[1] ?? ""), { recursive: true });
    writeFileSync(files[1] ?? "", "{}");
    expect(path()).toBe(files[1]);
  });

  it("are documented for every host", () => {
    expect(Object.keys(DOCUMENTED)).toEqual(Object.keys(MCP_HOSTS));
    const page = readFileSync(new URL("../../../../docs/mcp-hosts.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name);
    expect(rows).toEqual(Object.keys(MCP_HOSTS));
  });
});
