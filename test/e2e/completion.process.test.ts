import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { prepare, SERVER } from "../cli/commands/completion/support.js";
import { BIN, cleanEnv, collect, linesOf, runProcess, temporaryFolder } from "../helpers/cli.js";
import { ON_LINUX } from "../helpers/systems.js";

const home = temporaryFolder();
const programs = join(home, "bin");
const env = { HOME: home, AGENTAUTH_HOME: join(home, "settings"), PATH: `${programs}:${process.env["PATH"]}` };

beforeAll(async () => {
  mkdirSync(programs);
  // Only for completions it is the program; every other command line of a test is printed, word by word.
  const script = `#!/bin/sh
case "$1" in complete*) exec ${shellWord(process.execPath)} ${shellWord(BIN)} "$@";; esac
printf '<%s>' "$@"; echo\n`;
  writeFileSync(join(programs, "agentauth"), script);
  chmodSync(join(programs, "agentauth"), 0o755);
  await prepare(env);
});

const has = (program: string, flag = "--version") => spawnSync(program, [flag]).status === 0;
const hasScript = ON_LINUX && has("script");
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
  const { code, stdout, stderr } = await runProcess(["completion", shell], { env });
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
