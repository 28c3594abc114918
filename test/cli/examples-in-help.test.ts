import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { type CommandInfo, describeProgram, leafCommands } from "../../src/cli/commands/commands/run.js";
import { temporaryFolder } from "../helpers/folder.js";
import { declaredProgram } from "../helpers/program.js";

const tree = describeProgram(declaredProgram());
const commands = leafCommands(tree.commands);
const folder = temporaryFolder();

/** Every command of ours that a line for a shell starts, as the shell itself takes the line apart. */
function invocations(line: string): string[][] {
  const seen = join(folder, "seen");
  writeFileSync(seen, "");
  const script = `
    agentauth() { printf '%s\\0' "$@" >> ${seen}; printf '\\1\\0' >> ${seen}; }
    curl() { :; }
    cat() { :; }
    git() { case "$3" in '!'*) eval "\${3#!}";; esac; }
    ${line.replace(/<([a-z_]+)>/g, "$1").replace(/ < \S+/g, "")}
    wait`;
  const run = spawnSync("bash", ["-c", script], { cwd: folder, encoding: "utf8" });
  expect(run.stderr, line).toBe("");
  const words = readFileSync(seen, "utf8").split("\0").slice(0, -1);
  const found: string[][] = [[]];
  for (const word of words) word === "\u0001" ? found.push([]) : found.at(-1)?.push(word);
  return found.slice(0, -1);
}

/** Parses a command line without running it; what the parser says of it. */
async function problemWith(argv: readonly string[]): Promise<string | undefined> {
  const root = declaredProgram(argv);
  let ran = false;
  const disarm = (command: Command) => {
    if (command.commands.length === 0) {
      command.action(() => {
        ran = true;
      });
    }
    command.commands.forEach(disarm);
  };
  disarm(root);
  try {
    await root.parseAsync([...argv], { from: "user" });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return ran ? undefined : "no command ran";
}

it("finds the commands of a line, also inside of others", () => {
  expect(invocations('curl -H "Bearer $(agentauth token <mcp_url>)" …')).toEqual([["token", "mcp_url"]]);
  expect(invocations("git config x '!agentauth token u --format git'")).toEqual([["token", "u", "--format", "git"]]);
});

it("sees what is wrong with a line", async () => {
  expect(await problemWith(["devices", "list", "--lmit", "3"])).toContain("--lmit");
  expect(await problemWith(["devices", "list", "-o", "jsn"])).toContain("jsn");
  expect(await problemWith(["devices", "get"])).toContain("device_id");
});

describe.each(commands.map((one): [string, CommandInfo] => [one.name, one]))("%s", (name, { examples, summary }) => {
  it("has a summary and examples that parse, one of them its own", async () => {
    expect(summary).not.toBe("");
    const lines = examples.flatMap(invocations);
    for (const argv of lines) expect(await problemWith(argv), argv.join(" ")).toBeUndefined();
    const words = name.split(" ");
    expect(lines.map((argv) => argv.slice(0, words.length))).toContainEqual(words);
  });
});

describe("groups", () => {
  const groups = tree.commands.flatMap((one) => (one.commands.length > 0 ? [one] : []));

  it("have examples that parse, where they have any", async () => {
    for (const argv of groups.flatMap(({ examples }) => examples.flatMap(invocations))) {
      expect(await problemWith(argv), argv.join(" ")).toBeUndefined();
    }
  });
});
