import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { agentMode, ENVIRONMENT, isNewSession } from "../../../src/cli/runtime/agent-mode.js";
import { linesOf, runCli, temporaryFolder } from "../../helpers/cli.js";
import { createMemoryIo } from "../../helpers/memory-io.js";
import { testbedTest } from "../../helpers/testbed-test.js";

const NOTE = (name: string) =>
  `for an AI agent (${name}): JSON, no prompt, no browser; AGENTAUTH_AGENT=0 turns that off`;
const CLAUDE = { CLAUDECODE: "1" };

const it = testbedTest({ devices: 3 });

describe("where an AI agent runs the program", () => {
  it.for<[string, Record<string, string>, string]>([
    ["Claude Code", CLAUDE, "claude"],
    ["Codex", { CODEX_SANDBOX: "seatbelt" }, "codex"],
    ["Cursor", { CURSOR_AGENT: "1" }, "cursor"],
    ["one that names itself", { AI_AGENT: "mine" }, "mine"],
    ["one that AGENTAUTH_AGENT names", { AGENTAUTH_AGENT: "1" }, "AGENTAUTH_AGENT is set"],
  ])("lists are JSON and stderr says so: %s", async ([_who, env, name], { testbed }) => {
    const { code, stdout, stderr } = await testbed.run(testbed.devices, { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toHaveLength(3);
    const [note, brief, ...more] = linesOf(stderr);
    expect([note, more]).toEqual([NOTE(name), []]);
    expect(JSON.parse(brief ?? "")).toMatchObject({ shown: 3, total: 3, next: null });
  });

  it.for<[string, Record<string, string>]>([
    ["no agent", {}],
    ["CI", { CI: "true", GITHUB_ACTIONS: "true" }],
    ["an agent that is not to count", { ...CLAUDE, AGENTAUTH_AGENT: "0" }],
  ])("and not for %s", async ([_who, env], { testbed }) => {
    const { stdout, stderr } = await testbed.run(testbed.devices, { env });
    expect([stdout.startsWith("dev_"), stderr]).toEqual([true, ""]);
  });

  it("flags and the profile's format come first, and the line on stderr can be hushed", async ({ testbed }) => {
    for (const flags of [["-o", "plain"], ["-o", "csv"], ["--output=id"]]) {
      const explicit = await testbed.run([...testbed.devices, ...flags], { env: CLAUDE });
      expect(explicit).toEqual(await testbed.run([...testbed.devices, ...flags]));
    }
    expect((await testbed.run([...testbed.devices, "--quiet"], { env: CLAUDE })).stderr).toBe("");
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await testbed.run(["config", "set", "output", "id"], { env });
    const { stdout, stderr } = await testbed.run(testbed.devices, { env: { ...env, ...CLAUDE } });
    expect([linesOf(stdout).every((line) => /^dev_\w+$/.test(line)), stderr]).toEqual([true, ""]);
  });

  it.each([["doctor"], ["config", "list"], ["profile", "list"], ["commands"], ["sandbox", "status"]])(
    "%s %s is JSON too",
    async (...args) => {
      const { stdout } = await runCli(args.filter(Boolean), { env: CLAUDE });
      expect(() => JSON.parse(stdout)).not.toThrow();
    },
  );

  it("errors are JSON on the last line of stderr, those of the parser too", async () => {
    for (const args of [
      ["devices", "list"],
      ["devices", "list", "--lmit"],
      ["token", "https://mcp.example/mcp"],
    ]) {
      const { stdout, stderr } = await runCli(args, { env: { ...CLAUDE, HTTPS_PROXY: "http://127.0.0.1:9" } });
      const [note, json = "", ...more] = linesOf(stderr);
      expect([stdout, note, more]).toEqual(["", NOTE("claude"), []]);
      expect(JSON.parse(json)).toEqual({ error: expect.objectContaining({ message: expect.any(String) }) });
    }
    const text = await runCli(["devices", "list", "-o", "table"], { env: CLAUDE });
    expect(text.stderr).toMatch(/^error: .*no pool is named\nhint: /);
  });
});

describe("an AI agent", () => {
  /** The name in the announcement; undefined where no agent is found. */
  const nameOf = (env: Record<string, string>, isTTY: boolean) => {
    const io = createMemoryIo();
    agentMode({ AGENTAUTH_HOME: temporaryFolder(), ...env }, { isTTY })?.announce(io);
    return /^for an AI agent \((.*)\): /.exec(io.err())?.[1];
  };

  it.for<[string, Record<string, string>]>([
    ["claude", { CLAUDECODE: "1" }],
    ["claude", { CLAUDE_CODE: "1" }],
    ["gemini", { GEMINI_CLI: "1" }],
    ["codex", { CODEX_SANDBOX: "1" }],
    ["codex", { CODEX_THREAD_ID: "1" }],
    ["opencode", { OPENCODE: "1" }],
    ["auggie", { AUGMENT_AGENT: "1" }],
    ["junie", { JUNIE_DATA: "/x" }],
    ["junie", { JUNIE_SHIM_PATH: "/x" }],
    ["copilot", { COPILOT_AGENT: "\n" }],
    ["copilot", { COPILOT_CLI: "1" }],
    ["copilot", { AI_AGENT: "github_copilot_vscode_agent" }],
    ["copilot", { AI_AGENT: "GITHUB_COPILOT_CLOUD_AGENT" }],
    ["github_copilot_cli_agent", { AI_AGENT: "github_copilot_cli_agent" }],
    ["x_github_copilot_vscode_agent", { AI_AGENT: "x_github_copilot_vscode_agent" }],
    ["github_copilot_vscode_agent_2", { AI_AGENT: "github_copilot_vscode_agent_2" }],
    ["cursor", { CURSOR_AGENT: "1" }],
    ["mine", { AI_AGENT: "Mine", CLAUDECODE: "1" }],
    ["AGENTAUTH_AGENT is set", { AGENTAUTH_AGENT: "00", CLAUDECODE: "1" }],
  ])("is %s, on a terminal too, with %j", ([name, env]) => {
    expect([nameOf(env, false), nameOf(env, true)]).toEqual([name, name]);
  });

  it.for<[string, Record<string, string>]>([
    ["replit", { REPL_ID: "1" }],
    ["pi", { PATH: "/bin:/home/ann/.pi/agent/bin" }],
    ["pi", { PATH: "C:\\ann\\.pi\\agent" }],
    ["goose", { GOOSE_PROVIDER: "x" }],
    ["goose", { AI_AGENT: "goose" }],
    ["devin", { EDITOR: "/opt/devin/vi" }],
    ["kiro", { TERM_PROGRAM: "kiro" }],
  ])("is %s where no user has a terminal, with %j", ([name, env]) => {
    expect([nameOf(env, false), nameOf(env, true)]).toEqual([name, undefined]);
  });

  it.for<Record<string, string>>([
    {},
    { PATH: "/bin:/home/ann/api/agent", EDITOR: "vi", TERM_PROGRAM: "iTerm.app", CI: "1" },
    ...["0", "false", "No", "OFF"].map((off) => ({ AGENTAUTH_AGENT: off, AI_AGENT: "mine", CLAUDECODE: "1" })),
  ])("is none with %j", (env) => {
    expect([nameOf(env, false), nameOf(env, true)]).toEqual([undefined, undefined]);
  });

  it("is announced once a run", () => {
    const io = createMemoryIo();
    const mode = agentMode({ AGENTAUTH_HOME: "/nowhere/at-all", AI_AGENT: "mine" }, { isTTY: false });
    mode?.announce(io);
    mode?.announce(io);
    expect(io.err()).toBe(`${NOTE("mine")}\n`);
  });
});

describe("a session of an AI agent", () => {
  const HOUR = 3_600_000;
  const NAMES = [
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_SESSION_ID",
    "CODEX_THREAD_ID",
    "GEMINI_SESSION_ID",
    "CURSOR_TRACE_ID",
  ];

  it.for([...NAMES, "COPILOT_AGENT_SESSION_ID", "OPENCODE_SESSION_ID"])("lasts a day where %s names it", (name) => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const isNew = (id: string, now: number) => isNewSession("claude", { ...env, [name]: id }, now);
    expect([isNew("1", 0), isNew("1", 24 * HOUR - 1), isNew("2", 5), isNew("1", 24 * HOUR)]).toEqual([
      ...[true, false, true, true],
    ]);
  });

  it("lasts an hour of the same agent otherwise, and none of the future", () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const isNew = (agent: string, now: number) => isNewSession(agent, env, now);
    expect([isNew("a", HOUR), isNew("a", 2 * HOUR - 1), isNew("b", HOUR)]).toEqual([true, false, true]);
    expect(isNew("b", HOUR)).toBe(false);
    expect([isNew("a", 2 * HOUR), isNew("a", 2 * HOUR - 1), isNew("a", 2 * HOUR)]).toEqual([true, true, false]);
  });

  it("is one of the latest twenty, in a private file", () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    for (let nth = 0; nth < 22; nth++) isNewSession(`agent ${nth}`, env, nth);
    const path = join(env.AGENTAUTH_HOME, "agent-sessions.json");
    const seen = JSON.parse(readFileSync(path, "utf8"));
    expect(Object.values(seen)).toEqual(Array.from({ length: 20 }, (_, nth) => 21 - nth));
    expect(Object.keys(seen)).toEqual(expect.arrayContaining([expect.stringMatching(/^[\da-f]{16}$/)]));
    expect([readFileSync(path, "utf8").endsWith("}\n"), statSync(path).mode & 0o777]).toEqual([true, 0o600]);
    expect([isNewSession("agent 2", env, 22), isNewSession("agent 0", env, 22)]).toEqual([false, true]);
  });

  it("is new each time where the folder is missing or the file cannot be used", () => {
    const missing = { AGENTAUTH_HOME: join(temporaryFolder(), "missing") };
    const damaged = { AGENTAUTH_HOME: temporaryFolder() };
    writeFileSync(join(damaged.AGENTAUTH_HOME, "agent-sessions.json"), "[", { mode: 0o600 });
    const blocked = { AGENTAUTH_HOME: temporaryFolder() };
    mkdirSync(join(blocked.AGENTAUTH_HOME, "agent-sessions.json"));
    for (const env of [missing, blocked]) {
      expect([isNewSession("a", env, 0), isNewSession("a", env, 1)]).toEqual([true, true]);
    }
    expect([isNewSession("a", damaged, 0), isNewSession("a", damaged, 1)]).toEqual([true, false]);
    writeFileSync(join(damaged.AGENTAUTH_HOME, "agent-sessions.json"), "[1]", { mode: 0o600 });
    expect([isNewSession("a", damaged, 0), isNewSession("a", damaged, 1)]).toEqual([true, false]);
  });

  it("keeps nothing else that the file had", () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const path = join(env.AGENTAUTH_HOME, "agent-sessions.json");
    writeFileSync(path, JSON.stringify({ a: "text", b: 3 }), { mode: 0o600 });
    isNewSession("a", env, 5);
    expect(Object.values(JSON.parse(readFileSync(path, "utf8")))).toEqual([5, 3]);
  });
});

const SOURCES = fileURLToPath(new URL("../../../src/cli/", import.meta.url));

/** Variables that the system or another program sets. */
const OF_THE_MACHINE = [
  ...[
    ...["USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "PATH", "PATHEXT", "LANG"],
    ...["LC_ALL", "LC_CTYPE", "SSH_CONNECTION"],
  ],
  ...["TERM_PROGRAM", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"],
  // What exec sets for another program; doctor only hides its value.
  "AGENTAUTH_TOKEN",
  ...["KUBERNETES_EXEC_INFO", "AI_AGENT", "NODE_TLS_REJECT_UNAUTHORIZED"],
];

it("help environment names every variable that the command line reads", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const read = files.flatMap((name) =>
    [...readFileSync(join(SOURCES, name), "utf8").matchAll(/\benv\["([A-Z_]+)"\]/g)].map(([, variable]) => variable),
  );
  const named = ENVIRONMENT.flatMap(([names]) => names.split(", "));
  expect(read.length).toBeGreaterThan(10);
  expect([...new Set(read)].filter((name = "") => ![...named, ...OF_THE_MACHINE].includes(name))).toEqual([]);
});
