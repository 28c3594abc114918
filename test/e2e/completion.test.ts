import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { fileStore } from "../../src/store/file/file.js";
import { BIN, cleanEnv, collect, linesOf, runCli, startProcesses, temporaryFolder } from "../helpers/cli.js";
import { madeGrant } from "../helpers/grant.js";

startProcesses();

const home = temporaryFolder();
const programs = join(home, "bin");
const env = { HOME: home, AGENTAUTH_HOME: join(home, "settings"), PATH: `${programs}:${process.env["PATH"]}` };

const SERVER = "https://mcp.example/mcp";
/** What a shell would run, if it were put on a line as it is. */
const TRAP = "https://mcp.example/$(>trapped)";

beforeAll(async () => {
  mkdirSync(programs);
  // Only asked for completions it is the program; whatever else is typed in a test is shown, word by word.
  const script = `#!/bin/sh
case "$1" in complete*) exec ${shellWord(process.execPath)} ${shellWord(BIN)} "$@";; esac
printf '<%s>' "$@"; echo\n`;
  writeFileSync(join(programs, "agentauth"), script);
  chmodSync(join(programs, "agentauth"), 0o755);
  for (const server of [SERVER, TRAP]) {
    await fileStore(env.AGENTAUTH_HOME).save(madeGrant({ server, resource: server, generation: 1 }), undefined);
  }
  for (const [key, value] of [
    ["base_url", "https://agentauth.example"],
    ["account", "acc_1"],
    ["domain", "dom_1"],
    ["pool", "pool_staging"],
  ]) {
    const set = await runCli(["config", "set", key ?? "", value ?? "", "--profile", "staging"], { env });
    expect(set.code, set.stderr).toBe(0);
  }
});

/** What the scripts are told for words of which the last is to be completed. */
async function offered(...words: string[]) {
  const { code, stdout, stderr } = await runCli(["complete", "--", ...words], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const lines = linesOf(stdout);
  return { values: lines.slice(0, -1).map((line) => line.split("\t")[0]), end: lines.at(-1) };
}

describe("agentauth complete", () => {
  it.each<[string, string[], string[]]>([
    ["a command", ["dev"], ["devices"]],
    ["a verb", ["devices", "l"], ["list"]],
    ["a flag of the command", ["devices", "list", "--page"], ["--page-size"]],
    ["a flag that every command has", ["devices", "list", "--prof"], ["--profile"]],
    [
      "a flag after another one",
      ["devices", "list", "--json", "--output=json", "-ojson", "--seen-a"],
      ["--seen-after"],
    ],
    ["a choice", ["devices", "list", "-o", "nd"], ["ndjson"]],
    ["a choice in the same word", ["devices", "list", "--output=nd"], ["ndjson"]],
    ["a choice of an operand", ["completion", "b"], ["bash"]],
    ["a profile", ["devices", "list", "--profile", ""], ["default", "staging"]],
    ["an account", ["tree", "--account", ""], ["acc_1"]],
    ["a domain", ["pools", "list", "--domain", ""], ["dom_1"]],
    ["a pool", ["devices", "list", "--pool", "pool"], ["pool_staging"]],
    [
      "a field of a device",
      ["devices", "list", "--columns", "last_seen.c"],
      ["last_seen.city", "last_seen.country_code"],
    ],
    ["a field after others", ["devices", "list", "--columns=id,sess"], ["id,session_type"]],
    ["a field to sort by", ["devices", "list", "--sort", "l"], ["last_seen"]],
    ["a documented value", ["devices", "list", "--session-type", ""], ["browser", "api", "mcp"]],
    ["a setting", ["config", "set", "base"], ["base_url"]],
    ["a profile to use", ["profile", "use", "st"], ["staging"]],
    ["a server that somebody is signed in at", ["token", ""], [SERVER]],
    ["the same after a flag", ["token", "--force-refresh", ""], [SERVER]],
    ["a topic of the help", ["help", "exit"], ["exit-codes"]],
    ["of the help no command that is for shells", ["help", "comp"], ["completion"]],
    ["a type of output", ["schema", "rep"], ["report"]],
    ["a host", ["mcp", "config", "claude-c"], ["claude-code"]],
    ["nothing for what is no command", ["nonsense", ""], []],
  ])("offers %s", async (_what, words, values) => {
    expect(await offered(...words)).toEqual({ values, end: ":4" });
  });

  it("offers short and long flags after a dash", async () => {
    const { values } = await offered("devices", "list", "-");
    expect(values).toEqual(expect.arrayContaining(["-o", "--output", "-q", "--quiet"]));
    expect(new Set(values).size).toBe(values.length);
  });

  it("leaves files to the shell where one is meant", async () => {
    expect(await offered("token", "--ca-file", "")).toEqual({ values: [], end: ":0" });
    expect(await offered("exec", SERVER, "--", "ls", "")).toEqual({ values: [], end: ":0" });
  });

  it("is silent where settings and logins cannot be read, and still knows the commands", async () => {
    const broken = temporaryFolder();
    writeFileSync(join(broken, "config.json"), "{");
    const { code, stdout, stderr } = await runCli(["complete", "--", "token", "--form"], {
      env: { AGENTAUTH_HOME: broken, AGENTAUTH_STORE: "nonsense", AGENTAUTH_AGENT: "1" },
    });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "--format\tOutput format (default: raw)\n:4\n",
      stderr: "",
    });
  });

  it("opens no keychain", async () => {
    const { stdout } = await runCli(["complete", "--", "token", ""], { env: { ...env, AGENTAUTH_STORE: "keyring" } });
    expect(stdout).toBe(":4\n");
  });
});

const has = (program: string, flag = "--version") => spawnSync(program, [flag]).status === 0;
const hasScript = process.platform === "linux" && has("script");
for (const [name, there] of [
  ["script", hasScript],
  ["zsh", has("zsh")],
  ["fish", has("fish")],
] as const) {
  if (!there) process.stderr.write(`SKIPPED: completion tests that need the program ${name}\n`);
}

/** What a shell on a terminal shows of lines that are typed, keys included. */
async function typed(shell: string, keys: readonly string[]): Promise<string[]> {
  const all = { ...cleanEnv(env), TERM: "dumb", PS1: "", HISTFILE: "" };
  const child = spawn("script", ["-qec", shell, "/dev/null"], { env: all, cwd: home, stdio: "pipe" });
  const out = collect(child.stdout);
  child.stdin.write(`${keys.join("\n")}\nexit\n`);
  await once(child, "close");
  return linesOf(out().replaceAll("\r", "")).flatMap(
    (line) => /(?:^|[^<>])(<[^<>]*>(?:<[^<>]*>)*)$/.exec(line)?.[1] ?? [],
  );
}

/** What is typed, and the words that come of it. */
const KEYS: readonly (readonly [string, string])[] = [
  ["agentauth dev\tli\t", "<devices><list>"],
  ["agentauth devices list --page-s\t5", "<devices><list><--page-size><5>"],
  ["agentauth devices list --profile sta\t", "<devices><list><--profile><staging>"],
  ["agentauth token https://mcp.ex\t", `<token><${SERVER}>`],
  ["agentauth token ht\t--force-r\t", `<token><${SERVER}><--force-refresh>`],
];

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout, stderr } = await runCli(["completion", shell], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const path = join(home, `completion.${shell}`);
  writeFileSync(path, stdout);
  return path;
}

describe.skipIf(!hasScript)("in bash", () => {
  it("the tab key completes commands, flags, values and addresses", async () => {
    const path = await scriptFor("bash");
    const keys = [`source ${path}`, `source ${path}`, ...KEYS.map(([line]) => line)];
    expect(await typed("bash --norc --noprofile -i", keys)).toEqual(KEYS.map(([, words]) => words));
  });

  it("completes a value behind an equals sign, a word in the middle of a line, and files", async () => {
    writeFileSync(join(home, "authorities.pem"), "");
    const keys = [
      `source ${await scriptFor("bash")}`,
      "agentauth devices list --output=nd\t",
      "agentauth dev list\u001b[D\u001b[D\u001b[D\u001b[D\u001b[D\t",
      "agentauth token --ca-file author\t",
    ];
    expect(await typed("bash --norc --noprofile -i", keys)).toEqual([
      "<devices><list><--output=ndjson>",
      "<devices><list>",
      "<token><--ca-file><authorities.pem>",
    ]);
  });

  it("runs nothing of what is typed", async () => {
    const keys = [
      `source ${await scriptFor("bash")}`,
      "agentauth token $(touch ran) https://mcp.ex\t\u0015ls ran; echo '<end>'",
    ];
    expect(await typed("bash --norc --noprofile -i", keys)).toEqual(["<end>"]);
    expect(spawnSync("ls", [join(home, "ran"), join(home, "trapped")]).stdout.toString()).toBe("");
  });
});

describe.skipIf(!hasScript || !has("zsh"))("in zsh", () => {
  it("the tab key completes commands, flags, values and addresses", async () => {
    const path = await scriptFor("zsh");
    const start = ["autoload -Uz compinit", "compinit -u -D", `source ${path}`];
    const words = await typed("zsh -f -i", [...start, ...KEYS.map(([line]) => line)]);
    expect(words).toEqual(KEYS.map(([, expected]) => expected));
  });
});

describe.skipIf(!has("fish"))("in fish", () => {
  it.each([
    ["agentauth dev", "devices"],
    ["agentauth devices list --page-s", "--page-size"],
    ["agentauth devices list --profile sta", "staging"],
    ["agentauth token https://mcp.ex", SERVER],
  ])("%s becomes %s", async (line, value) => {
    const script = `source ${await scriptFor("fish")}; complete -C ${shellWord(line)}`;
    const { stdout } = spawnSync("fish", ["--no-config", "-c", script], { env: cleanEnv(env), encoding: "utf8" });
    expect(linesOf(stdout).map((one) => one.split("\t")[0])).toEqual([value]);
  });
});

it("has a script for PowerShell, and for no shell that it does not know", async () => {
  const { stdout } = await runCli(["completion", "powershell"]);
  expect(stdout).toContain("Register-ArgumentCompleter -CommandName 'agentauth'");
  const { code, stderr } = await runCli(["completion", "bsh"]);
  expect(code).toBe(2);
  expect(stderr).toContain("hint: did you mean bash?");
});
