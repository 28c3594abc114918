import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { describeProgram, leafCommands } from "../src/cli/commands/commands/run.js";
import { declaredProgram } from "./helpers/program.js";

const tree = describeProgram(declaredProgram());
const commands = leafCommands(tree.commands);
const pages = readdirSync("docs").filter((name) => /^cli(-.*)?\.md$/.test(name));
const page = pages.map((name) => readFileSync(`docs/${name}`, "utf8")).join("\n");
const man = readFileSync("docs/man/agentauth.1", "utf8");
const plain = man.replaceAll("\\-", "-");

const has = (program: string) => spawnSync(program, ["--version"]).status === 0;
if (!has("groff")) process.stderr.write("SKIPPED: the tests of the manual page need the program groff\n");

describe("the pages that are made of the commands", () => {
  it("have every command, and every flag", () => {
    for (const { name, usage, flags } of commands) {
      expect(page).toContain(`\n## ${name}\n`);
      expect(plain).toContain(`\n.SS ${usage}\n`);
      for (const flag of flags) {
        expect(page).toContain(flag.name);
        expect(plain).toContain(flag.name);
      }
    }
  });

  it("are not those of a version before", () => {
    expect(man).toContain(`"agentauth ${tree.version}"`);
  });
});

describe.skipIf(!has("groff"))("the manual page", () => {
  it("has no mistake that groff warns of", () => {
    const { status, stderr } = spawnSync("groff", ["-man", "-ww", "-z", "-Tutf8", "docs/man/agentauth.1"], {
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  it("shows commands as a shell takes them", () => {
    const { stdout } = spawnSync("groff", ["-man", "-Tutf8", "docs/man/agentauth.1"], { encoding: "utf8" });
    const text = stripVTControlCharacters(stdout);
    for (const { examples } of commands) for (const line of examples) expect(text).toContain(line);
  });
});
