import { describe, expect, it } from "vitest";
import { describeProgram, leafCommands } from "../../../../src/cli/commands/commands/run.js";
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

  it("prints one command or group of them, as text and as JSON", async () => {
    const devices = tree.commands.find(({ name }) => name === "devices");
    const list = devices?.commands.find(({ name }) => name === "devices list");
    for (const words of [["devices", "list"], ["devices list"], [" devices  list "]]) {
      expect(JSON.parse((await runCli(["commands", ...words, "--json"])).stdout)).toEqual(
        JSON.parse(JSON.stringify(list)),
      );
    }
    expect(JSON.parse((await runCli(["commands", "devices", "-o", "json"])).stdout).commands).toHaveLength(3);
    expect((await runCli(["commands", "devices"])).stdout).toMatchSnapshot();
    expect((await runCli(["commands", "sandbox", "fault"])).stdout).toMatchSnapshot();
  });

  it("names to an agent each command and what it does, in short", async () => {
    const { code, stdout, stderr } = await runCli(["commands"], { env: { AGENTAUTH_AGENT: "1" } });
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      leafCommands(tree.commands).map(({ name, summary }) => ({ name, summary })),
    ]);
    expect(stderr).toContain(
      "agentauth commands <command> has its flags and examples; agentauth commands --json has those of all\n",
    );
  });

  it.each([["devics"], ["devices", "lst"], ["devices list", "x"], ["nothing"], [""], [" "]])(
    "refuses the command %j %j, which is none",
    async (...words) => {
      const { code, stdout, stderr } = await runCli(["commands", ...words]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatchSnapshot();
    },
  );

  it("refuses a format that it does not have", async () => {
    const { code, stdout, stderr } = await runCli(["commands", "-o", "yaml"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^error: --output "yaml" must be one of text, json\n/);
    expect(fixedText(stderr)).toMatchSnapshot();
  });
});
