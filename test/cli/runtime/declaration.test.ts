import { existsSync, readdirSync } from "node:fs";
import { Command, Help } from "commander";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../../src/cli/commands/all.gen.js";
import { describeProgram } from "../../../src/cli/commands/commands/run.js";
import { BUNDLE_OF_WORD, HIDDEN_WORDS } from "../../../src/cli/groups/words.gen.js";
import { buildProgram, declareInOrder } from "../../../src/cli/program.js";
import type { CommandDeclaration, Registry } from "../../../src/cli/runtime/declaration.js";

const CONTEXT = { io: { stdout: { columns: 80 } }, argv: [] } as never;
/** Devices, pools and domains are declared together. */
const MOST_TOGETHER = 3;

const named = (name: string, group: CommandDeclaration["group"], order: number): CommandDeclaration => ({
  group,
  order,
  names: [name],
  declare: ({ root }) => void root.command(name),
});

describe("the commands", () => {
  it("come in the order of the headings, and of their numbers below each", () => {
    const root = new Command();
    const commands = [named("c", "Help:", 1), named("b", "Tokens:", 10), named("a", "Tokens:", 9)];
    declareInOrder(commands, { root } as Registry);
    expect(root.commands.map((command) => [command.name(), command.helpGroup()])).toEqual([
      ["a", "Tokens:"],
      ["b", "Tokens:"],
      ["c", "Help:"],
    ]);
  });

  it("are the same where only those are declared that the first word names", () => {
    const whole = describeProgram(buildProgram(CONTEXT, { text: "", error: "" }, { commands: COMMANDS }).root);
    for (const word of COMMANDS.flatMap(({ names, readsAll }) => (readsAll ? [] : names))) {
      const { root } = buildProgram(CONTEXT, { text: "", error: "" }, { commands: COMMANDS, word });
      expect(root.commands.length, word).toBeLessThanOrEqual(MOST_TOGETHER);
      expect(describeProgram(root).commands.find(({ name }) => name === word)).toEqual(
        whole.commands.find(({ name }) => name === word),
      );
    }
  });

  it("name every word that a command line may begin with: the bundles know no other", () => {
    const { root } = buildProgram(CONTEXT, { text: "", error: "" }, { commands: COMMANDS });
    const listed = new Help().visibleCommands(root).map((command) => command.name());
    const hidden = root.commands.map((command) => command.name()).filter((name) => !listed.includes(name));
    expect([...BUNDLE_OF_WORD.keys()].sort()).toEqual(listed.sort());
    expect([...HIDDEN_WORDS].sort()).toEqual(hidden.sort());
  });

  it("are all declared, each at a place that no other has", () => {
    const folders = readdirSync("src/cli/commands").filter((name) => existsSync(`src/cli/commands/${name}/command.ts`));
    expect(COMMANDS).toHaveLength(folders.length);
    expect(new Set(COMMANDS.map(({ group, order }) => `${group} ${order}`)).size).toBe(COMMANDS.length);
  });
});
