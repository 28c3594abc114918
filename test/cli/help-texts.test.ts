import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describeProgram } from "../../src/cli/commands/commands/command-tree.js";
import { runCli } from "../helpers/cli.js";
import { declaredProgram } from "../helpers/program.js";

describe("every text of the help", () => {
  it.each([
    ["docs/cli.md", "cli-page", "cliPage"],
    ["docs/man/agentauth.1", "man-page", "manPage"],
  ])("is in %s, which npm run generate writes", async (path, module, name) => {
    const { [name]: pageOf } = await import(`../../scripts/generate/${module}.mjs`);
    expect(pageOf(describeProgram(declaredProgram()))).toBe(readFileSync(path, "utf8"));
  });
});

describe("what no generated page has", () => {
  it.each([
    ["help", "agents"],
    ["help", "exit-codes"],
    ["help", "environment"],
    ["help", "formats"],
    ["completion", "bash"],
    ["completion", "zsh"],
    ["completion", "fish"],
    ["completion", "powershell"],
  ])("agentauth %s %s is held whole", async (...args) => {
    const { code, stdout, stderr } = await runCli(args, { env: { COLUMNS: "100" } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatchSnapshot();
  });
});
