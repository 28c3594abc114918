import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import {
  HOST_SCOPES,
  type HostMachine,
  MCP_HOSTS,
  settingsFiles,
  settingsPath,
} from "../../../src/cli/clients/hosts.js";
import {
  changeHostFile,
  changeServer,
  merged,
  readHostFile,
  serversIn,
} from "../../../src/cli/commands/mcp/hosts/settings.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { fc } from "../../helpers/properties.js";
import { ON_WINDOWS } from "../../helpers/systems.js";

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
    const page = readFileSync(new URL("../../../docs/mcp-hosts.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name);
    expect(rows).toEqual(Object.keys(MCP_HOSTS));
  });
});

const ENTRY = { command: "agentauth", args: ["mcp", "proxy", "https://mcp.example/mcp"] };
const KEY = "mcpServers";

/** Spaces, line breaks and comments, as they can be between any two words of JSON. */
const gap = fc
  .array(fc.constantFrom(" ", "\t", "\n", "\r\n", '/* a, "b": {} */', "// c, }\n", "/* d\n */"), { maxLength: 3 })
  .map((parts) => parts.join(""));
const value = fc.constantFrom("1", '"x,}"', "null", "[1, {}]", '{"url": "https://a.example"}', "{ }");

/** An object as text, with a comma after its last member or without one. */
function objectText(members: fc.Arbitrary<readonly string[]>): fc.Arbitrary<string> {
  return fc
    .tuple(members, fc.array(gap, { minLength: 14, maxLength: 14 }), fc.boolean())
    .map(([all, gaps, isClosed]) => {
      const lines = all.map((member, at) => gaps[2 * at] + member + gaps[2 * at + 1]);
      const comma = isClosed && all.length > 0 ? `,${gaps[12]}` : "";
      return `{${lines.join(",")}${comma}${gaps[13]}}`;
    });
}

const servers = objectText(
  fc
    .uniqueArray(fc.constantFrom("a", "b", "c"), { maxLength: 3 })
    .chain((names) => fc.tuple(...names.map((name) => value.map((one) => `"${name}": ${one}`)))),
);
const settings = fc
  .tuple(fc.option(servers, { nil: undefined }), fc.boolean(), fc.boolean())
  .chain(([own, isBefore, isAfter]) => {
    const all = [
      isBefore ? ['"first": 1'] : [],
      own === undefined ? [] : [`"mcpServers": ${own}`],
      isAfter ? ['"last": [2]'] : [],
    ];
    return fc.tuple(gap, objectText(fc.constant(all.flat())), gap).map((parts) => parts.join(""));
  });

const commentsOf = (text: string) => text.match(/\/\*[\s\S]*?\*\/|\/\/ c, \}/g);
/** Whether a text has the characters of another one in their order. */
function has(longer: string, shorter: string): boolean {
  let at = 0;
  for (const character of shorter) {
    at = longer.indexOf(character, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

it("a server is added, updated and removed again, and nothing else changes", () => {
  fc.assert(
    fc.property(settings, (text) => {
      const added = changeServer(KEY, text, "own", ENTRY);
      expect(serversIn(KEY, added)["own"]).toEqual(ENTRY);
      expect([commentsOf(added), has(added, text.replace(/\s/g, ""))]).toEqual([commentsOf(text), true]);
      const updated = changeServer(KEY, added, "own", { ...ENTRY, env: { A: "b" } });
      expect(commentsOf(updated)).toEqual(commentsOf(text));
      const removed = changeServer(KEY, updated, "own", undefined);
      const { mcpServers = {}, ...rest } = parse(text);
      expect([parse(removed), commentsOf(removed)]).toEqual([{ ...rest, mcpServers }, commentsOf(text)]);
    }),
    { numRuns: 300 },
  );
});

const OWN = '"own": {\n    "command": "x"\n  }';

describe("a server is written", () => {
  it.each([
    ["into no text", "", '{\n  "mcpServers": {\n    "own": {\n      "command": "x"\n    }\n  }\n}\n'],
    [
      "into settings without servers",
      "{\r\n}",
      '{\r\n  "mcpServers": {\r\n    "own": {\r\n      "command": "x"\r\n    }\r\n  }\r\n}',
    ],
    ["into no servers", '{"mcpServers": {}}', `{"mcpServers": {\n  ${OWN}\n}}`],
    ["before the others", '{"mcpServers": {"a": 1, }, "b": 2}', `{"mcpServers": {\n  ${OWN},"a": 1, }, "b": 2}`],
    [
      "in the place of another value",
      '{"mcpServers": {"a": 1, "own": [1] /* x */}}',
      `{"mcpServers": {"a": 1, "own": {\n  "command": "x"\n} /* x */}}`,
    ],
  ])("%s", (_what, text, expected) => {
    expect(changeServer(KEY, text, "own", { command: "x" })).toBe(expected);
  });
});

describe("a server is removed", () => {
  it.each([
    ['{"mcpServers": {"own": 1}}', '{"mcpServers": {}}'],
    ['{"mcpServers": {"a": 1, "own": 2}}', '{"mcpServers": {"a": 1 }}'],
    ['{"mcpServers": {"own": 2, "a": 1}}', '{"mcpServers": { "a": 1}}'],
    [
      '{\n  "mcpServers": {\n    "a": {}, // x\n    "own": {}, // y\n    /* z */\n  },\n}\n',
      '{\n  "mcpServers": {\n    "a": {}, // x\n    /* z */\n  },\n}\n',
    ],
    [
      '{\n  "mcpServers": {\n    "a": {}, // x\n    "own": {}\n  }\n}\n',
      '{\n  "mcpServers": {\n    "a": {} // x\n  }\n}\n',
    ],
    ['{"a": 1}', '{"a": 1}'],
  ])("from %j", (text, expected) => {
    expect(changeServer(KEY, text, "own", undefined)).toBe(expected);
  });
});

it.each([
  ["[]", "the settings must be an object", 1],
  ['{\n"mcpServers": []}', '"mcpServers" must be an object', 2],
  ['{"mcpServers": null}', '"mcpServers" must be an object', 1],
  ['{"a": 1,\n"a": 2}', 'the key "a" is there twice', 2],
  ['{"mcpServers": {"a": 1,\n\n"a": 2}}', 'the key "a" is there twice', 3],
  ['{\n "a": 1\n "b": 2\n}', "it is not valid JSON", 3],
])("%j has no servers that can be read", (text, message, line) => {
  for (const read of [() => serversIn(KEY, text), () => changeServer(KEY, text, "own", {})])
    expect(read).toThrow(`${message}, in line ${line}`);
});

it.each<[unknown, object, object]>([
  [{ a: 1, b: 2 }, { a: 2 }, { a: 2, b: 2 }],
  [{ env: { MINE: "1", A: "2" } }, { env: { A: "3" } }, { env: { MINE: "1", A: "3" } }],
  [1, { a: 1 }, { a: 1 }],
  [{ env: 5 }, { env: { A: "1" } }, { env: { A: "1" } }],
])("%j with the values %j is %j", (stored, entry, expected) => {
  expect(merged(stored, entry as never)).toEqual(expected);
});

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** A folder without links in its path. */
const folder = () => realpathSync(temporaryFolder());

/** What a call throws, with a placeholder for the folder. */
function failure(at: string, call: () => unknown) {
  try {
    call();
  } catch (error) {
    const { code, message, hint = "" } = error as { code: string; message: string; hint?: string };
    return [code, message, hint].map((text) => text.replaceAll(at, "<folder>"));
  }
  throw new Error("nothing was thrown");
}

describe.skipIf(ON_WINDOWS)("a new file", () => {
  it.each([
    [undefined, "700", "600"],
    ["project", "755", "644"],
  ])("is private unless it is of a project (%s)", (project, ofFolder, ofFile) => {
    const at = folder();
    const before = process.umask(0o022);
    try {
      const path = join(at, "a", "b", "mcp.json");
      expect(readHostFile(path, project && at)).toBe("");
      expect(changeHostFile(path, project && at, () => "{}")).toBeUndefined();
      expect([modeOf(join(at, "a")), modeOf(join(at, "a", "b")), modeOf(path)]).toEqual([ofFolder, ofFolder, ofFile]);
      expect([readFileSync(path, "utf8"), readdirSync(join(at, "a", "b"))]).toEqual(["{}", ["mcp.json"]]);
    } finally {
      process.umask(before);
    }
  });
});

describe("a file that is there", () => {
  it("keeps its byte order mark and its mode, and has its old content beside it", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, "\uFEFF{}");
    chmodSync(path, 0o640);
    expect(readHostFile(path, at)).toBe("{}");
    const backup = changeHostFile(path, at, (text) => text.replace("}", '"a":1}')) ?? "";
    expect(backup).toMatch(/mcp\.json\.\d{8}T\d{9}Z\.agentauth\.bak$/);
    expect([readFileSync(path, "utf8"), readFileSync(backup, "utf8")]).toEqual(['\uFEFF{"a":1}', "\uFEFF{}"]);
    if (!ON_WINDOWS) expect([modeOf(path), modeOf(backup)]).toEqual(["640", "640"]);
    expect(readdirSync(at)).toHaveLength(2);
  });

  it("is read up to 8 MiB", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, Buffer.alloc(8 * 1024 * 1024, " "));
    expect(readHostFile(path)).toHaveLength(8 * 1024 * 1024);
  });
});

describe.skipIf(ON_WINDOWS)("what is no file of a host", () => {
  it("is refused, and says what helps", () => {
    const at = folder();
    const path = (name: string) => join(at, name);
    mkdirSync(path("folder"));
    execFileSync("mkfifo", [path("pipe")]);
    writeFileSync(path("bytes"), Buffer.from([0xff]));
    writeFileSync(path("large"), Buffer.alloc(8 * 1024 * 1024 + 1));
    writeFileSync(path("file"), "{}");
    symlinkSync("nowhere", path("dangling"));
    symlinkSync("loop", path("loop"));
    const found = ["folder", "pipe", "bytes", "large", "dangling", "loop", "file/below"].map((name) => [
      name,
      ...failure(at, () => readHostFile(path(name))),
    ]);
    expect(found.map(([name, code, message]) => [name, code, message?.replace(/^.*? (?=is|cannot)/, "")])).toEqual([
      ["folder", "usage", "is not an ordinary file of at most 8388608 bytes"],
      ["pipe", "usage", "is not an ordinary file of at most 8388608 bytes"],
      ["bytes", "usage", "is not UTF-8 text"],
      ["large", "usage", "is not an ordinary file of at most 8388608 bytes"],
      ["dangling", "usage", "is a symbolic link that leads nowhere"],
      ["loop", "usage", "is a symbolic link that leads nowhere"],
      ["file/below", "store_failed", "cannot be read (ENOTDIR)"],
    ]);
  });

  it("is what leads out of a project, by the file or a folder above it", () => {
    const at = folder();
    const project = join(at, "project");
    mkdirSync(join(project, "inside"), { recursive: true });
    mkdirSync(join(at, "outside"));
    writeFileSync(join(at, "outside", "mcp.json"), "{}");
    symlinkSync(join(at, "outside"), join(project, "folder"));
    symlinkSync(join(at, "outside", "mcp.json"), join(project, "mcp.json"));
    symlinkSync(join(project, "inside"), join(project, "own"));
    const refused = ["folder/mcp.json", "folder/new/mcp.json", "mcp.json"].map((name) =>
      failure(at, () => readHostFile(join(project, name), project)),
    );
    for (const [code, message] of refused)
      expect([code, message]).toEqual(["usage", expect.stringContaining("leads out of")]);
    changeHostFile(join(project, "own", "mcp.json"), project, () => "[]");
    expect(readFileSync(join(project, "inside", "mcp.json"), "utf8")).toBe("[]");
    expect(readHostFile(join(project, "mcp.json"))).toBe("{}");
  });

  it("is one that is read-only, which stays as it is", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, "{}");
    chmodSync(path, 0o444);
    expect(failure(at, () => changeHostFile(path, undefined, () => "[]"))[2]).toBe("chmod u+w <folder>/mcp.json");
    expect([readFileSync(path, "utf8"), readdirSync(at)]).toEqual(["{}", ["mcp.json"]]);
  });
});
