import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../src/cli/commands/all.gen.js";
import { buildProgram } from "../src/cli/program.js";

const SRC = join(import.meta.dirname, "../src");

/** The names of all commands and flags of the command line. */
function namesOf(command: Command): { commands: string[]; flags: string[] } {
  const below = command.commands.map(namesOf);
  const own = command.options.flatMap(({ long }) => long ?? []);
  return {
    commands: [...command.commands.map((child) => child.name()), ...below.flatMap(({ commands }) => commands)],
    flags: [...own, ...below.flatMap(({ flags }) => flags)],
  };
}

const { commands, flags } = namesOf(
  buildProgram({ io: { stdout: { columns: 80 } }, argv: [] } as never, { text: "", error: "" }, { commands: COMMANDS })
    .root,
);
const NAMES = new RegExp(
  `\\bagentauth (?:${[...new Set(commands)].join("|")})\\b|(?<![\\w-])(?:${[...new Set(flags)].join("|")})(?![\\w-])`,
);

/** The texts in a module: string literals and the fixed parts of templates. */
function textsOf(path: string): string[] {
  const texts: string[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      texts.push(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest));
  return texts;
}

describe("the library", () => {
  // What profile/ says is about the settings of the command line, which programs share.
  it("names no command and no flag of the command line in its texts", () => {
    const modules = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter(
      (path) => path.endsWith(".ts") && !/^(?:cli|profile)[/\\]/.test(path),
    );
    expect(modules.length).toBeGreaterThan(100);
    const found = modules.flatMap((path) =>
      textsOf(join(SRC, path))
        .filter((text) => NAMES.test(text))
        .map((text) => `${path}: ${text}`),
    );
    expect(found).toEqual([]);
  });

  it.each(["run agentauth login x", "agentauth mcp tools", "use --flow device", "--ca-file <file>", "(--scope)"])(
    "would be found out by %j",
    (text) => {
      expect(text).toMatch(NAMES);
    },
  );

  it.each(["agentauth's key", "an entry of agentauth from the keychain", "docker run --network host", "--line:#fff"])(
    "may say %j",
    (text) => {
      expect(text).not.toMatch(NAMES);
    },
  );
});
