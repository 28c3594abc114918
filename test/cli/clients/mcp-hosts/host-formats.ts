/** The format of a host's settings, as its public documentation has it. */
export interface DocumentedFormat {
  /** The page that documents it. */
  docs: string;
  /** The page that documents the file of a project, where it is another one. */
  projectDocs?: string;
  /** What states a file that the documentation leaves out. */
  source?: string;
  /** The files by scope and platform (`*`: all of them), in a home folder `~`; none that only the program can change. */
  files: Readonly<Record<string, string>>;
  /** The settings with a server `example` that runs `npx -y pkg` with the variable `A=b`. */
  settings: object;
}

const server = { command: "npx", args: ["-y", "pkg"], env: { A: "b" } };
const mcpServers = { mcpServers: { example: server } };
const stdio = { type: "stdio", ...server };

/** Every host of the table. */
export const DOCUMENTED: Readonly<Record<string, DocumentedFormat>> = {
  amp: {
    docs: "https://ampcode.com/manual",
    files: { "user *": "~/.config/amp/settings.json", "project *": ".amp/settings.json" },
    settings: { "amp.mcpServers": { example: server } },
  },
  antigravity: {
    docs: "https://antigravity.google/docs/mcp",
    projectDocs: "https://antigravity.google/docs/cli/mcp",
    files: { "user *": "~/.gemini/config/mcp_config.json", "project *": ".agents/mcp_config.json" },
    settings: mcpServers,
  },
  "claude-code": {
    docs: "https://code.claude.com/docs/en/mcp",
    files: { "user *": "~/.claude.json", "project *": ".mcp.json" },
    settings: { mcpServers: { example: stdio } },
  },
  "claude-desktop": {
    docs: "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    files: {
      "user darwin": "~/Library/Application Support/Claude/claude_desktop_config.json",
      "user win32": "~/AppData/Roaming/Claude/claude_desktop_config.json",
    },
    settings: mcpServers,
  },
  cline: {
    docs: "https://docs.cline.bot/getting-started/config",
    files: { "user *": "~/.cline/data/settings/cline_mcp_settings.json" },
    settings: mcpServers,
  },
  codex: {
    docs: "https://developers.openai.com/codex/mcp",
    projectDocs: "https://developers.openai.com/codex/config-reference",
    files: { "user *": "~/.codex/config.toml", "project *": ".codex/config.toml" },
    settings: { mcp_servers: { example: server } },
  },
  continue: {
    docs: "https://docs.continue.dev/customize/deep-dives/mcp",
    files: {
      "user *": "~/.continue/mcpServers/agentauth.json",
      "project *": ".continue/mcpServers/agentauth.json",
    },
    settings: mcpServers,
  },
  "copilot-cli": {
    docs: "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
    files: { "user *": "~/.copilot/mcp-config.json", "project *": ".github/mcp.json" },
    settings: { mcpServers: { example: { type: "local", ...server, tools: ["*"] } } },
  },
  crush: {
    docs: "https://github.com/charmbracelet/crush#mcps",
    files: {
      "user linux": "~/.config/crush/crush.json",
      "user darwin": "~/.config/crush/crush.json",
      "user win32": "~/AppData/Local/crush/crush.json",
      "project *": ".crush.json",
    },
    settings: { mcp: { example: stdio } },
  },
  cursor: {
    docs: "https://cursor.com/docs/context/mcp",
    files: { "user *": "~/.cursor/mcp.json", "project *": ".cursor/mcp.json" },
    settings: mcpServers,
  },
  devin: {
    docs: "https://docs.devin.ai/cli/extensibility/mcp/configuration",
    files: {
      "user linux": "~/.config/devin/mcp_config.json",
      "user darwin": "~/.config/devin/mcp_config.json",
      "user win32": "~/AppData/Roaming/devin/mcp_config.json",
      "project *": ".devin/mcp_config.json",
    },
    settings: mcpServers,
  },
  "gemini-cli": {
    docs: "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
    files: { "user *": "~/.gemini/settings.json", "project *": ".gemini/settings.json" },
    settings: mcpServers,
  },
  goose: {
    docs: "https://block.github.io/goose/docs/getting-started/using-extensions",
    files: {
      "user linux": "~/.config/goose/config.yaml",
      "user darwin": "~/.config/goose/config.yaml",
      "user win32": "~/AppData/Roaming/Block/goose/config/config.yaml",
    },
    settings: {
      extensions: {
        example: {
          type: "stdio",
          name: "example",
          enabled: true,
          cmd: "npx",
          args: ["-y", "pkg"],
          envs: { A: "b" },
          timeout: 300,
        },
      },
    },
  },
  "jetbrains-ai-assistant": {
    docs: "https://www.jetbrains.com/help/ai-assistant/mcp.html",
    files: {},
    settings: mcpServers,
  },
  junie: {
    docs: "https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html",
    files: { "user *": "~/.junie/mcp/mcp.json", "project *": ".junie/mcp/mcp.json" },
    settings: mcpServers,
  },
  kiro: {
    docs: "https://kiro.dev/docs/mcp/configuration",
    files: { "user *": "~/.kiro/settings/mcp.json", "project *": ".kiro/settings/mcp.json" },
    settings: mcpServers,
  },
  "lm-studio": {
    docs: "https://lmstudio.ai/docs/app/mcp",
    // It quotes the documentation, and has the folder of an older installation, ~/.cache/lm-studio.
    source: "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1371",
    files: { "user *": "~/.lmstudio/mcp.json" },
    settings: mcpServers,
  },
  opencode: {
    docs: "https://opencode.ai/docs/mcp-servers",
    files: { "user *": "~/.config/opencode/opencode.json", "project *": "opencode.json" },
    settings: {
      mcp: { example: { type: "local", command: ["npx", "-y", "pkg"], enabled: true, environment: { A: "b" } } },
    },
  },
  "qwen-code": {
    docs: "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp",
    files: { "user *": "~/.qwen/settings.json", "project *": ".qwen/settings.json" },
    settings: mcpServers,
  },
  roo: {
    docs: "https://docs.roocode.com/features/mcp/using-mcp-in-roo",
    source: "https://github.com/RooCodeInc/Roo-Code/blob/main/src/shared/globalFileNames.ts",
    files: {
      "user linux": "~/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
      "user darwin":
        "~/Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
      "user win32": "~/AppData/Roaming/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
      "project *": ".roo/mcp.json",
    },
    settings: mcpServers,
  },
  "visual-studio": {
    docs: "https://learn.microsoft.com/en-us/visualstudio/ide/mcp-servers",
    files: { "user win32": "~/.mcp.json", "project win32": ".mcp.json" },
    settings: { servers: { example: stdio } },
  },
  vscode: {
    docs: "https://code.visualstudio.com/docs/copilot/customization/mcp-servers",
    files: {
      "user linux": "~/.config/Code/User/mcp.json",
      "user darwin": "~/Library/Application Support/Code/User/mcp.json",
      "user win32": "~/AppData/Roaming/Code/User/mcp.json",
      "project *": ".vscode/mcp.json",
    },
    settings: { servers: { example: stdio } },
  },
  warp: {
    docs: "https://docs.warp.dev/agent-platform/capabilities/mcp",
    files: { "user *": "~/.warp/.mcp.json", "project *": ".warp/.mcp.json" },
    settings: mcpServers,
  },
  windsurf: {
    docs: "https://docs.windsurf.com/windsurf/cascade/mcp",
    files: { "user *": "~/.codeium/windsurf/mcp_config.json" },
    settings: mcpServers,
  },
  zed: {
    docs: "https://zed.dev/docs/ai/mcp",
    projectDocs: "https://zed.dev/docs/worktree-trust",
    files: {
      "user linux": "~/.config/zed/settings.json",
      "user darwin": "~/.config/zed/settings.json",
      "user win32": "~/AppData/Roaming/Zed/settings.json",
      "project *": ".zed/settings.json",
    },
    settings: { context_servers: { example: server } },
  },
};
