/** How a host starts the command that speaks MCP with it. */
export interface ProxyEntry {
  command: string;
  args: readonly string[];
  /** What the command needs in its environment; empty where that is nothing. */
  env: Readonly<Record<string, string>>;
}

/** How a host asks a command for the headers of its own requests. */
export interface HelperEntry {
  url: string;
  /** A line for a shell. */
  helper: string;
}

/** A program that uses MCP servers, and how it wants them written down. */
export interface McpHost {
  /** Where the snippet belongs. */
  readonly file: string;
  readonly language: "json" | "toml" | "yaml";
  /** The snippet for a server as a command, as plain data. */
  proxy(name: string, entry: ProxyEntry): object;
  /** The snippet for a server with a command for its headers; absent where the host knows no such thing. */
  helper?(name: string, entry: HelperEntry): object;
}

const mcpServers = (name: string, { command, args, env }: ProxyEntry) => ({
  mcpServers: { [name]: { command, args, ...unlessEmpty("env", env) } },
});

/** The hosts by the names that they have on the command line. */
export const MCP_HOSTS: Readonly<Record<string, McpHost>> = {
  "claude-code": {
    file: ".mcp.json in the project, or ~/.claude.json for all of them",
    language: "json",
    proxy: (name, { command, args, env }) => ({
      mcpServers: { [name]: { type: "stdio", command, args, ...unlessEmpty("env", env) } },
    }),
    helper: (name, { url, helper }) => ({ mcpServers: { [name]: { type: "http", url, headersHelper: helper } } }),
  },
  "claude-desktop": {
    file:
      "claude_desktop_config.json in ~/Library/Application Support/Claude (macOS) or %APPDATA%\\Claude (Windows), " +
      "which Settings > Developer > Edit Config opens",
    language: "json",
    proxy: mcpServers,
  },
  cline: {
    file: "cline_mcp_settings.json, which MCP Servers > Configure > Configure MCP Servers opens",
    language: "json",
    proxy: mcpServers,
  },
  codex: {
    file: "~/.codex/config.toml",
    language: "toml",
    proxy: (name, { command, args, env }) => ({
      mcp_servers: { [name]: { command, args, ...unlessEmpty("env", env) } },
    }),
  },
  cursor: {
    file: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
    language: "json",
    proxy: mcpServers,
  },
  "gemini-cli": {
    file: "~/.gemini/settings.json, or .gemini/settings.json in a project",
    language: "json",
    proxy: mcpServers,
  },
  goose: {
    file: "~/.config/goose/config.yaml, on Windows %APPDATA%\\Block\\goose\\config\\config.yaml",
    language: "yaml",
    proxy: (name, { command, args, env }) => ({
      extensions: { [name]: { type: "stdio", name, enabled: true, cmd: command, args, envs: env, timeout: 300 } },
    }),
  },
  opencode: {
    file: "opencode.json in the project, or ~/.config/opencode/opencode.json for all of them",
    language: "json",
    proxy: (name, { command, args, env }) => ({
      mcp: {
        [name]: { type: "local", command: [command, ...args], enabled: true, ...unlessEmpty("environment", env) },
      },
    }),
  },
  vscode: {
    file: ".vscode/mcp.json in the workspace, or the file that MCP: Open User Configuration opens",
    language: "json",
    proxy: (name, { command, args, env }) => ({
      servers: { [name]: { type: "stdio", command, args, ...unlessEmpty("env", env) } },
    }),
  },
  windsurf: {
    file: "~/.codeium/windsurf/mcp_config.json",
    language: "json",
    proxy: mcpServers,
  },
  zed: {
    file: "settings.json, which zed: open settings file opens",
    language: "json",
    proxy: (name, { command, args, env }) => ({ context_servers: { [name]: { command, args, env } } }),
  },
};

function unlessEmpty(key: string, env: ProxyEntry["env"]): object {
  return Object.keys(env).length === 0 ? {} : { [key]: env };
}
