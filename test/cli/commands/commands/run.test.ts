import { describe, expect, it } from "vitest";
import { describeProgram, leafCommands } from "../../../../src/cli/commands/commands/run.js";
import { EXIT_CODES } from "../../../../src/cli/runtime/exit-codes.js";
import { FORMATS } from "../../../../src/profile/settings.js";
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

const commands = leafCommands(tree.commands);

function command(name: string) {
  const found = commands.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
}

function flag(of: string, name: string) {
  return command(of).flags.find((one) => one.name === name);
}

describe("the command tree", () => {
  it("names every command once, groups with what is in them, and nothing that is hidden", () => {
    const names = commands.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(expect.arrayContaining(["demo", "token", "devices list", "config set", "sandbox fault"]));
    expect(names.filter((name) => /^(?:complete|exit-codes)$| help$/.test(name))).toEqual([]);
  });

  it("says what a flag takes", () => {
    expect(flag("devices list", "--output")).toMatchObject({ short: "-o", type: "choice", choices: FORMATS });
    expect(flag("devices list", "--limit")).toMatchObject({ type: "integer", value: "n", default: "all" });
    expect(flag("devices list", "--strict")).toMatchObject({ value: "level", value_optional: true });
    expect(flag("login", "--login-timeout")).toMatchObject({ type: "number", default: "300" });
    expect(flag("login", "--browser")).toMatchObject({ type: "string", env: ["BROWSER"] });
    expect(flag("exec", "--as")).toMatchObject({ type: "string" });
    expect(flag("request", "--header")).toMatchObject({ type: "string", repeatable: true });
    expect(flag("token", "--no-login")).toEqual({
      name: "--no-login",
      type: "boolean",
      group: "Options",
      description: "Never log in",
    });
    expect(tree.flags.map(({ name }) => name)).toEqual(expect.arrayContaining(["--profile", "--help", "--version"]));
  });

  it("reads a placeholder that has brackets itself, and takes no value for one that can be left out", () => {
    const sort = flag("devices list", "--sort");
    expect(sort).toMatchObject({ type: "string", value: "field[:asc|:desc]" });
    expect(sort).not.toHaveProperty("value_optional");
    const all = [...tree.flags, ...commands.flatMap(({ flags }) => flags)];
    expect(new Set(all.filter((one) => one.value_optional).map(({ name }) => name))).toEqual(
      new Set(["--hand-over", "--idp", "--keep-alive", "--strict"]),
    );
    const brackets = (value: string) => [value.split("[").length, value.split("<").length];
    const closing = (value: string) => [value.split("]").length, value.split(">").length];
    for (const { value = "" } of all) expect([value, brackets(value)]).toEqual([value, closing(value)]);
  });

  it("describes a command and its flags whole", () => {
    expect([command("sandbox fault"), command("store keep-alive")]).toMatchSnapshot();
    const { schema_version, name, summary, flags } = tree;
    expect({ schema_version, name, summary, flags }).toMatchSnapshot();
  });

  it("names the flags that may be repeated, and the variables of those that have some", () => {
    const all = [...tree.flags, ...commands.flatMap(({ flags }) => flags)];
    const namesOf = (chosen: typeof all) => [
      ...new Set(chosen.map(({ name, env }) => [name, ...(env ?? [])].join(" "))),
    ];
    expect(namesOf(all.filter(({ repeatable }) => repeatable)).sort()).toMatchSnapshot();
    expect(namesOf(all.filter(({ env }) => env !== undefined)).sort()).toMatchSnapshot();
    expect(tree.environment.every(({ name, description }) => /^[A-Z_]+$/.test(name) && description !== "")).toBe(true);
  });

  it("lists operands, with their choices", () => {
    expect(command("completion").arguments).toEqual([
      {
        name: "shell",
        required: true,
        variadic: false,
        description: "Name of the shell",
        choices: ["bash", "zsh", "fish", "powershell"],
      },
    ]);
    expect(command("sandbox fault").arguments).toMatchObject([{ name: "faults", required: false, variadic: true }]);
  });

  it("keeps examples and the rest of the help apart", () => {
    const { examples, description } = command("token");
    expect(examples).toContain("agentauth token https://mcp.example/mcp --format headers-json");
    expect(description).toMatch(/^Uses the stored token, refreshes it, or logs in \(interactive terminals only\)\.\n/);
    expect(description).not.toContain("$ agentauth");
  });

  it("has every exit code", () => {
    expect(tree.exit_codes.map(({ name, code }) => [name, code])).toEqual(Object.entries(EXIT_CODES));
  });

  it("has every environment variable that a flag names", () => {
    const names = tree.environment.map(({ name }) => name);
    const named = [...tree.flags, ...commands.flatMap(({ flags }) => flags)].flatMap(({ env = [] }) => env);
    expect(named.filter((name) => !names.includes(name))).toEqual([]);
  });

  it("begins with what a newcomer needs, and ends with help", () => {
    const names = tree.commands.map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(["demo", "login", "token"]);
    expect([...new Set(tree.commands.map(({ group }) => group))]).toEqual([
      "Start",
      "Tokens",
      "Lists",
      "Settings",
      "Sandbox",
      "Help",
    ]);
  });
});
