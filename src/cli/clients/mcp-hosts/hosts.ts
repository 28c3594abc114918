import type { McpHost, ProxyEntry, SettingsPaths } from "./host.js";

const command = (_name: string, { command, args, env }: ProxyEntry) => ({ command, args, ...unlessEmpty("env", env) });
const stdio = (name: string, entry: ProxyEntry) => ({ type: "stdio", ...command(name, entry) });

/** A host with a JSON file and an object `mcpServers`, as most of them have. */
const mcpServers = { language: "json", key: "mcpServers", proxy: command } as const;

/** A file for the user, and one for a project. */
function atPaths(user: string, project: string): Pick<McpHost, "file" | "settingsPaths"> {
  return { file: `${user}, or ${project} in a project`, settingsPaths: { user: [user], project: [project] } };
}

const CONFIG = "{XDG_CONFIG_HOME|~/.config}";
const APPDATA = "{APPDATA|~/AppData/Roaming}";
const LOCALAPPDATA = "{LOCALAPPDATA|~/AppData/Local}";
/** Where Windows keeps what Claude Desktop, which is installed as a package (MSIX), has in its `%APPDATA%`. */
const CLAUDE_PACKAGE = `${LOCALAPPDATA}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming`;

/** A file on Windows, and on the other platforms. */
function onPlatforms(unix: string, win32: string): SettingsPaths {
  return { linux: [unix], darwin: [unix], win32: [win32] };
}

/** A file in the folder of VS Code's default profile, after those that are preferred to it. */
function inCode(file: string, ...preferred: string[]): SettingsPaths {
  return {
    linux: [...preferred, `${CONFIG}/Code/User/${file}`],
    darwin: [...preferred, `~/Library/Application Support/Code/User/${file}`],
    win32: [...preferred, `${APPDATA}/Code/User/${file}`],
  };
}

/** The hosts by the names that they have on the command line. */
export const MCP_HOSTS: Readonly<Record<string, McpHost>> = {
  amp: {
    ...mcpServers,
    file: "~/.config/amp/settings.json, or .amp/settings.json in a project",
    settingsPaths: {
      user: ["~/.config/amp/settings.json", "~/.config/amp/settings.jsonc"],
      project: [".amp/settings.json", ".amp/settings.jsonc"],
    },
    // One key with a dot, as in the settings of VS Code.
    key: "amp.mcpServers",
  },
  antigravity: { ...mcpServers, ...atPaths("~/.gemini/config/mcp_config.json", ".agents/mcp_config.json") },
  "claude-code": {
    ...mcpServers,
    file: ".mcp.json in the project, or ~/.claude.json for all of them",
    settingsPaths: { user: ["{CLAUDE_CONFIG_DIR|~}/.claude.json"], project: [".mcp.json"] },
    proxy: stdio,
    helper: ({ url, helper }) => ({ type: "http", url, headersHelper: helper }),
  },
  "claude-desktop": {
    ...mcpServers,
    file:
      "claude_desktop_config.json in ~/Library/Application Support/Claude (macOS) or %APPDATA%\\Claude (Windows), or where " +
      "that is a package, in %LOCALAPPDATA%\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude",
    settingsPaths: {
      user: {
        darwin: ["~/Library/Application Support/Claude/claude_desktop_config.json"],
        win32: [`?${CLAUDE_PACKAGE}/Claude/claude_desktop_config.json`, `${APPDATA}/Claude/claude_desktop_config.json`],
      },
    },
  },
  cline: {
    ...mcpServers,
    file: "cline_mcp_settings.json, which MCP Servers > Configure > Configure MCP Servers opens",
    settingsPaths: {
      user: inCode(
        "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        "~/.cline/data/settings/cline_mcp_settings.json",
      ),
    },
  },
  codex: {
    file: "~/.codex/config.toml, or .codex/config.toml in a project that you trust",
    settingsPaths: { user: ["{CODEX_HOME|~/.codex}/config.toml"], project: [".codex/config.toml"] },
    language: "toml",
    key: "mcp_servers",
    proxy: command,
  },
  continue: {
    ...mcpServers,
    file: "a file in ~/.continue/mcpServers, or in .continue/mcpServers in a project",
    settingsPaths: {
      user: ["~/.continue/mcpServers/agentauth.json"],
      project: [".continue/mcpServers/agentauth.json"],
    },
  },
  "copilot-cli": {
    ...mcpServers,
    file: "~/.copilot/mcp-config.json, or .github/mcp.json in a project",
    settingsPaths: { user: ["{COPILOT_HOME|~/.copilot}/mcp-config.json"], project: [".github/mcp.json"] },
    proxy: (name, entry) => ({ type: "local", ...command(name, entry), tools: ["*"] }),
  },
  crush: {
    language: "json",
    key: "mcp",
    file: "~/.config/crush/crush.json, or .crush.json in a project",
    settingsPaths: {
      user: onPlatforms(`${CONFIG}/crush/crush.json`, `${LOCALAPPDATA}/crush/crush.json`),
      project: [".crush.json", "crush.json"],
    },
    proxy: stdio,
  },
  cursor: {
    ...mcpServers,
    ...atPaths("~/.cursor/mcp.json", ".cursor/mcp.json"),
    link: (name, entry) => {
      const config = Buffer.from(JSON.stringify(entry)).toString("base64");
      return `cursor://anysphere.cursor-deeplink/mcp/install?name=${name}&config=${encodeURIComponent(config)}`;
    },
  },
  devin: {
    ...mcpServers,
    file: "~/.config/devin/mcp_config.json, on Windows %APPDATA%\\devin\\mcp_config.json, or .devin/mcp_config.json in a project",
    settingsPaths: {
      user: onPlatforms("~/.config/devin/mcp_config.json", `${APPDATA}/devin/mcp_config.json`),
      project: [".devin/mcp_config.json"],
    },
  },
  "gemini-cli": { ...mcpServers, ...atPaths("~/.gemini/settings.json", ".gemini/settings.json") },
  goose: {
    file: "~/.config/goose/config.yaml, on Windows %APPDATA%\\Block\\goose\\config\\config.yaml",
    settingsPaths: { user: onPlatforms("~/.config/goose/config.yaml", `${APPDATA}/Block/goose/config/config.yaml`) },
    language: "yaml",
    key: "extensions",
    proxy: (name, { command, args, env }) => ({
      type: "stdio",
      name,
      enabled: true,
      cmd: command,
      args,
      envs: env,
      timeout: 300,
    }),
  },
  "jetbrains-ai-assistant": {
    ...mcpServers,
    file: "Settings > Tools > AI Assistant > Model Context Protocol (MCP) > Add > As JSON",
    settingsPaths: {},
  },
  junie: { ...mcpServers, ...atPaths("~/.junie/mcp/mcp.json", ".junie/mcp/mcp.json") },
  kiro: { ...mcpServers, ...atPaths("~/.kiro/settings/mcp.json", ".kiro/settings/mcp.json") },
  "lm-studio": {
    ...mcpServers,
    file: "~/.lmstudio/mcp.json, which Program > Install > Edit mcp.json opens",
    // An older installation keeps its folder.
    settingsPaths: { user: ["~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"] },
  },
  opencode: {
    language: "json",
    key: "mcp",
    file: "opencode.json in the project, or ~/.config/opencode/opencode.json for all of them",
    settingsPaths: {
      user: ["~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"],
      project: ["opencode.json", "opencode.jsonc"],
    },
    proxy: (_name, { command, args, env }) => ({
      type: "local",
      command: [command, ...args],
      enabled: true,
      ...unlessEmpty("environment", env),
    }),
  },
  "qwen-code": { ...mcpServers, ...atPaths("~/.qwen/settings.json", ".qwen/settings.json") },
  roo: {
    ...mcpServers,
    file: "mcp_settings.json, which Edit Global MCP opens, or .roo/mcp.json in a project",
    settingsPaths: {
      user: inCode("globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
      project: [".roo/mcp.json"],
    },
  },
  "visual-studio": {
    language: "json",
    key: "servers",
    file: "%USERPROFILE%\\.mcp.json, or .mcp.json beside the solution",
    settingsPaths: { user: { win32: ["~/.mcp.json"] }, project: { win32: [".mcp.json"] } },
    proxy: stdio,
  },
  vscode: {
    language: "json",
    key: "servers",
    file: ".vscode/mcp.json in the workspace, or the file that MCP: Open User Configuration opens",
    settingsPaths: { user: inCode("mcp.json"), project: [".vscode/mcp.json"] },
    proxy: stdio,
    link: (name, entry) => `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...entry }))}`,
  },
  warp: { ...mcpServers, ...atPaths("~/.warp/.mcp.json", ".warp/.mcp.json") },
  windsurf: {
    ...mcpServers,
    file: "~/.codeium/windsurf/mcp_config.json",
    settingsPaths: { user: ["~/.codeium/windsurf/mcp_config.json"] },
  },
  zed: {
    language: "json",
    key: "context_servers",
    file: "settings.json, which zed: open settings file opens, or .zed/settings.json in a project that you trust",
    settingsPaths: {
      user: {
        linux: [`${CONFIG}/zed/settings.json`],
        darwin: ["~/.config/zed/settings.json"],
        win32: [`${APPDATA}/Zed/settings.json`],
      },
      project: [".zed/settings.json"],
    },
    proxy: (_name, { command, args, env }) => ({ command, args, env }),
  },
};

/** The hosts whose files `mcp add` can change. */
export const WRITABLE_HOSTS: readonly string[] = Object.keys(MCP_HOSTS).filter(
  (name) => Object.keys(MCP_HOSTS[name]?.settingsPaths ?? {}).length > 0,
);

function unlessEmpty(key: string, env: ProxyEntry["env"]): object {
  return Object.keys(env).length === 0 ? {} : { [key]: env };
}
