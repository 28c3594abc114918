import { Option } from "commander";
import { describe, expect, it } from "vitest";
import {
  commandLine,
  describeMore,
  fill,
  formatRows,
  globalFlagRows,
  HelpedCommand,
  readHelpText,
  visibleCommands,
  wrapProse,
} from "../../../src/cli/runtime/help.js";

interface Parts {
  /** Flags of the command's own. */
  own?: number;
  /** Flags of the group `set`. */
  ofGroup?: number;
  /** Further flags by their headings. */
  more?: Record<string, string[]>;
  prose?: number;
  examples?: string[];
  width?: number;
  isFull?: boolean;
}

/** A program with a command `work` of these parts, and a group `set`. */
function programOf({
  own = 1,
  ofGroup = 0,
  more = {},
  prose = 0,
  examples = [],
  width = 80,
  isFull = false,
}: Parts = {}) {
  const root = new HelpedCommand("agentauth", { width, isFull }).description("A program.").helpCommand(false);
  root
    .addOption(new Option("--profile <name>", "Profile to use").helpGroup("Service:"))
    .addHelpText("after", "\nsee help agents, help formats");
  const work = root
    .command("work")
    .description("Do the work")
    .argument("<url>", "Where")
    .argument("[words...]", "What");
  for (let nth = 0; nth < own; nth++) work.option(`--own-${nth}`, `Own flag ${nth}`);
  work.addOption(new Option("--secret", "Not shown").hideHelp());
  work.addOption(new Option("-f, --format <format>", "Format").choices(["a", "b"]));
  for (const [heading, flags] of Object.entries(more))
    for (const flag of flags) work.addOption(new Option(flag, `About ${flag}`).helpGroup(heading));
  work.addHelpText(
    "after",
    `\n${"A line of prose:\n".repeat(prose)}\nExamples:\n${examples.map((line) => `  $ ${line}\n`).join("")}`,
  );
  work.addHelpText("after", ({ command, error }) => (error ? "an error" : `\nThis was ${command.name()}.`));
  root.command("demo").description("Try it").helpGroup("Start:").argument("[what]", "What");
  root
    .command("login")
    .description("Log in")
    .helpGroup("Start:")
    .argument("<mcp_url>", "Where")
    .argument("<more>", "What");
  root
    .command("devices")
    .description("Devices")
    .helpGroup("Lists: of devices:")
    .command("list")
    .description("List them");
  const set = root.command("set").description("Change settings").helpGroup("Settings:");
  const one = set.command("one").description("Change one").argument("<key>", "Its name");
  one.addHelpText("after", "\nExamples:\n  $ other set\n  $ agentauth set one x\n");
  set.command("two").description("Change two").addHelpText("after", "\nExample:\n  $ agentauth set 2\n");
  set.command("three").description("Change three");
  for (let nth = 0; nth < ofGroup; nth++) set.addOption(new Option(`--g-${nth}`, "G").helpGroup("Login:"));
  root.command("hidden", { hidden: true }).description("Not listed");
  return { root, work, set };
}

const RARE = {
  "Login:": ["--scope <s>", "--dpop <p>"],
  "Security policy:": ["--strict"],
  "The client:": ["--key <k>"],
};
const MANY = { ...RARE, "Machine grants:": Array.from({ length: 40 }, (_, nth) => `--grant-${nth}`) };

describe("the help of a command", () => {
  it.each<[string, Parts]>([
    ["that has few flags", {}],
    ["in a narrow window", { width: 40, more: RARE, examples: ["agentauth work https://a.example/ --own-0"] }],
    ["that has its flags below headings", { more: RARE, examples: ["agentauth work a", "agentauth work b"] }],
    ["that has too many: the rare ones by name", { more: MANY, own: 3 }],
    ["that has far too many: the rare ones by heading", { more: MANY, own: 10, prose: 5 }],
    ["that has no room for prose", { more: MANY, own: 20, prose: 25, examples: Array(9).fill("agentauth work") }],
    ["that has everything", { more: RARE, own: 2, prose: 2, examples: ["agentauth work"], isFull: true }],
  ])("%s", (_what, parts) => {
    expect(programOf(parts).work.helpInformation()).toMatchSnapshot();
  });

  it("is for a group its commands, with an example of each", () => {
    expect(programOf().set.helpInformation()).toMatchSnapshot();
    expect(programOf({ isFull: true }).set.helpInformation()).toMatchSnapshot();
    expect(programOf({ ofGroup: 50 }).set.helpInformation()).toMatchSnapshot();
  });

  it("has its own flags first, in whatever order they were declared", () => {
    const command = programOf().root.command("late").description("Late");
    command.addOption(new Option("--scope <s>", "S").helpGroup("A: b:")).option("--own", "Own");
    expect(command.helpInformation()).toMatchSnapshot();
    for (let nth = 0; nth < 60; nth++)
      command.addOption(new Option(`--x-${nth}`, "X").helpGroup("A: b:")).option(`--y-${nth}`, "Y");
    expect(command.helpInformation()).toContain("More flags: a: b\n");
  });

  it("is for the program a screen, or all of it", () => {
    expect(programOf().root.helpInformation()).toMatchSnapshot();
    expect(programOf({ isFull: true, width: 60 }).root.helpInformation()).toMatchSnapshot();
  });

  it("lists neither hidden commands nor that of help", () => {
    const { root, set } = programOf();
    expect(visibleCommands(root).map((one) => one.name())).toEqual(["work", "demo", "login", "devices", "set"]);
    expect(visibleCommands(set).map((one) => one.name())).toEqual(["one", "two", "three"]);
    expect(globalFlagRows(root)).toEqual([
      ["--profile <name>", "Profile to use"],
      ["-h, --help", "display help for command"],
    ]);
  });
});

describe("text that is filled", () => {
  it.each<[string, number, number, string[]]>([
    ["", 10, 2, [""]],
    ["one two", 7, 2, ["one two"]],
    ["one two", 6, 2, ["one", "  two"]],
    ["  one two three", 7, 4, ["  one", "    two", "    three"]],
    ["  one two", 9, 4, ["  one two"]],
    ["a longest-of-all b", 5, 0, ["a", "longest-of-all", "b"]],
    ["one  two", 10, 0, ["one  two"]],
    ["one ", 10, 0, ["one "]],
  ])("%j in %i columns, the rest by %i", (text, width, hang, lines) => {
    expect(fill(text, width, hang)).toEqual(lines);
  });

  it("has no hang where none is named", () => {
    expect(fill("  one two", 5)).toEqual(["  one", "two"]);
  });
});

describe("rows", () => {
  const description = "what it does, in several words";

  it.each<[string, [string, string][], number, string[]]>([
    ["none", [], 80, []],
    [
      "side by side",
      [
        ["-a", "one"],
        ["--long", description],
      ],
      60,
      ["  -a      one", `  --long  ${description}`],
    ],
    [
      "broken beside their terms",
      [["-a", `${description} ${description}`]],
      40,
      [`  -a  ${description}`, `      ${description}`],
    ],
    ["below their terms in a narrow window", [["--abcdef", description]], 41, ["  --abcdef", `      ${description}`]],
    ["side by side in a window just wide enough", [["--abcdef", description]], 42, [`  --abcdef  ${description}`]],
    [
      "broken below their terms",
      [["--abcdef <x> <y>", description]],
      20,
      ["  --abcdef <x> <y>", "      what it does,", "      in several", "      words"],
    ],
    [
      "below a term that is too wide for a column",
      [
        ["-a", "one"],
        ["x".repeat(28), "two"],
        ["y".repeat(29), "three"],
      ],
      90,
      [`  -a${" ".repeat(28)}one`, `  ${"x".repeat(28)}  two`, `  ${"y".repeat(29)}`, `${" ".repeat(32)}three`],
    ],
    ["below a wide term alone", [["y".repeat(29), "three"]], 80, [`  ${"y".repeat(29)}`, "    three"]],
  ])("%s", (_what, rows, width, lines) => {
    expect(formatRows(rows, width)).toEqual(lines);
  });
});

describe("prose", () => {
  it.each<[string, string, number, string[]]>([
    ["joins the lines of a paragraph", "one two\nthree\n\nfour", 80, ["one two three", "", "four"]],
    ["breaks it at the width", "one two\nthree", 7, ["one two", "three"]],
    ["ends a paragraph at a colon", "these:\nnext one", 80, ["these:", "next one"]],
    ["leaves an indented line", "one\n  two three", 8, ["one", "  two", "    three"]],
    ["leaves columns", "one\nname  its meaning\nmore", 80, ["one", "name  its meaning", "more"]],
    ["breaks columns that have no indentation", "name  its meaning", 10, ["name", "      its", "      meaning"]],
    ["continues an indented line with a dash in it", "  a - bb cc", 9, ["  a - bb", "    cc"]],
    ["continues a point below its text", "  - one two three", 10, ["  - one", "    two", "    three"]],
    [
      "continues a row below its last column",
      `  name   ${"word ".repeat(8).trim()}`,
      39,
      [`  name   ${"word ".repeat(6).trim()}`, "         word word"],
    ],
    [
      "has a row below its name in a narrow window",
      `  name   ${"word ".repeat(6).trim()}`,
      30,
      ["  name", "      word word word word word", "      word"],
    ],
    ["leaves a short row in a narrow window", "  name   word", 13, ["  name   word"]],
    ["is empty", "", 80, [""]],
  ])("%s", (_what, text, width, lines) => {
    expect(wrapProse(text, width)).toEqual(lines);
  });
});

describe("a command line to paste", () => {
  it.each<[string, number, string[]]>([
    ["agentauth a b", 80, ["  $ agentauth a b"]],
    ["agentauth", 80, ["  $ agentauth"]],
    ["agentauth one two", 17, ["  $ agentauth \\", "      one two"]],
    ["agentauth one two", 21, ["  $ agentauth one two"]],
    ["agentauth one two", 20, ["  $ agentauth one \\", "      two"]],
    [
      `a --x '{"b": "c d"}' "e f" g'h i'j`,
      14,
      ["  $ a --x \\", `      '{"b": "c d"}' \\`, '      "e f" \\', "      g'h i'j"],
    ],
    ["", 80, ["  $ "]],
  ])("%j in %i columns", (command, width, lines) => {
    expect(commandLine(command, width)).toEqual(lines);
  });
});

it("the text of a command comes apart into prose and examples", () => {
  expect(readHelpText("\nOne.\n\n\n\nTwo.\n\nExamples:\n  $ a b\n  $ c\n   $ no\nExample:\n x $ no\n")).toEqual({
    text: "One.\n\nTwo.\n\n   $ no\n x $ no",
    examples: ["a b", "c"],
  });
  expect(readHelpText("The Examples: of x\nExample: y\n")).toEqual({
    text: "The Examples: of x\nExample: y",
    examples: [],
  });
  expect(describeMore({ more: "x" } as never) + describeMore({} as never)).toBe("x");
});
