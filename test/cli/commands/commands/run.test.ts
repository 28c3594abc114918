import { describe, expect, it } from "vitest";
import { describeProgram, leafCommands } from "../../../../src/cli/commands/commands/command-tree.js";
import { linesOf, runCli } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { declaredProgram } from "../../../helpers/program.js";

const tree = describeProgram(declaredProgram());

describe("commands", () => {
  it("lists every command below its group, with operands and a summary", async () => {
    const { code, stdout, stderr } = await runCli(["commands"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const groups = tree.commands.filter(({ commands }) => commands.length > 0);
    expect(linesOf(stdout).length).toBeGreaterThan(leafCommands(tree.commands).length);
    for (const { name, summary } of groups) expect(stdout).toMatch(new RegExp(`^${name} +${summary}$`, "m"));
    expect(stdout).toMatch(/^ {2}get <key> {2,}/m);
    expect(stdout).toMatch(/^schema \[type\] {2,}/m);
    expect(stdout).toMatch(/^exec \[mcp_url\] [<[]command\.\.\.[>\]] {2,}/m);
  });

  it.each([[["--json"]], [["-o", "json"]]])("prints the tree as JSON with %j, in one line", async (flags) => {
    const { code, stdout } = await runCli(["commands", ...flags]);
    expect(code).toBe(0);
    expect(linesOf(stdout)).toHaveLength(1);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(tree)));
  });

  it("prints the JSON over several lines on a terminal", async () => {
    const { stdout } = await runCli(["commands", "--json"], { tty: true });
    expect(linesOf(stdout).length).toBeGreaterThan(100);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(tree)));
  });

  it("refuses a format that it does not have", async () => {
    const { code, stdout, stderr } = await runCli(["commands", "-o", "yaml"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^error: --output "yaml" must be one of text, json\n/);
    expect(fixedText(stderr)).toMatchSnapshot();
  });
});
