import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describeProgram } from "../../src/cli/commands/commands/command-tree.js";
import { runCli } from "../helpers/cli.js";
import { declaredProgram } from "../helpers/program.js";

describe("every text of the help", () => {
  it.each(["cli-page", "man-page"])("is in the pages that npm run generate writes (%s)", async (module) => {
    const { cliPages, manPage } = await import(`../../scripts/generate/${module}.mjs`);
    const tree = describeProgram(declaredProgram());
    const pages: Record<string, string> = cliPages?.(tree) ?? { "docs/man/agentauth.1": manPage(tree) };
    for (const [path, text] of Object.entries(pages)) expect(text, path).toBe(readFileSync(path, "utf8"));
  });
});

describe("what no generated page has", () => {
  it.each([
    ["help", "agents"],
    ["help", "exit-codes"],
    ["help", "environment"],
    ["help", "formats"],
    ["schema", "--quiet"],
    ["completion", "bash"],
    ["completion", "zsh"],
    ["completion", "fish"],
    ["completion", "powershell"],
  ])("agentauth %s %s is held whole", async (...args) => {
    const { code, stdout, stderr } = await runCli(args, { env: { COLUMNS: "100" } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatchSnapshot();
  });

  it.each([
    "--help",
    "--help --all",
    "login --help",
    "login --help --all",
    "devices list --help",
    "mcp proxy --help --flags",
    "sandbox --help",
    "sandbox --help --all",
  ])("agentauth %s is held whole", async (line) => {
    const { code, stdout, stderr } = await runCli(line.split(" "), { env: { COLUMNS: "100" } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatchSnapshot();
  });
});
