import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describeProgram, leafCommands } from "../../../../src/cli/commands/commands/command-tree.js";
import { EXIT_CODES } from "../../../../src/cli/runtime/exit-codes.js";
import { linesOf, runCli } from "../../../helpers/cli.js";
import { declaredProgram } from "../../../helpers/program.js";

const { commands: TOP } = describeProgram(declaredProgram());
const GROUPS = TOP.filter(({ commands }) => commands.length > 0).map(({ name }) => name.split(" "));
const COMMANDS = leafCommands(TOP).map(({ name }) => name.split(" "));

describe("help is on stdout, exit 0", () => {
  it.each([...GROUPS, ...COMMANDS].map((words) => [words.join(" "), words] as const))("%s", async (name, words) => {
    const asked = await runCli([...words, "--help"]);
    expect({ code: asked.code, stderr: asked.stderr }).toEqual({ code: 0, stderr: "" });
    expect(asked.stdout).toMatch(new RegExp(`^Usage: agentauth ${name} `));
    expect(await runCli(["help", ...words])).toEqual(asked);
  });

  it.each(GROUPS.map((words) => [words[0] ?? "", words] as const))("%s without a command", async (_name, words) => {
    const { code, stdout, stderr } = await runCli(words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe((await runCli([...words, "--help"])).stdout);
  });

  it("the program itself: without a word, with help, -h and --help", async () => {
    // The first steps are printed only where nothing is set up.
    const env = { AGENTAUTH_BASE_URL: "https://agentauth.example" };
    const words = [[], ["help"], ["-h"], ["--help"]];
    const [plain, ...others] = await Promise.all(words.map((args) => runCli(args, { env })));
    expect(plain?.code).toBe(0);
    for (const word of ["demo", "devices", "tree", "help exit-codes", "To start without an account: agentauth demo"]) {
      expect(plain?.stdout).toContain(word);
    }
    for (const other of others) expect(other).toEqual(plain);
  });

  it.each([
    [60, ["mcp", "tools"]],
    [40, ["config"]],
  ] as const)("is broken between words for %i columns: %j", async (columns, words) => {
    const { stdout } = await runCli([...words, "--help"], { env: { COLUMNS: String(columns) } });
    const flags = linesOf(stdout).filter((line) => /^(?: {2}-| {15})/.test(line));
    expect(flags.length).toBeGreaterThan(20);
    // A word that is longer than the room cannot be broken.
    expect(flags.filter((line) => line.length > columns && line.trim().includes(" "))).toEqual([]);
  });

  it("says of the filters that they are applied here", async () => {
    const { stdout } = await runCli(["devices", "list", "--help"]);
    expect(stdout.replace(/\s+/g, " ")).toMatch(
      /--status <status> Filter by status \(client-side, after reading the whole list\)/,
    );
  });
});

describe("topics", () => {
  it("exit-codes names every code", async () => {
    const { stdout } = await runCli(["help", "exit-codes"]);
    const codes = linesOf(stdout).flatMap((line) => /^ {2}(\d+) {2}/.exec(line)?.[1] ?? []);
    expect(codes.map(Number)).toEqual(Object.values(EXIT_CODES));
    expect((await runCli(["exit-codes"])).stdout).toBe(stdout);
  });

  it("environment, formats and agents", async () => {
    expect((await runCli(["help", "environment"])).stdout).toContain("AGENTAUTH_API_TOKEN");
    expect((await runCli(["help", "formats"])).stdout).toMatch(/^ {2}ndjson /m);
    expect((await runCli(["help", "agents"])).stdout).toContain("AGENTAUTH_AGENT=0");
  });
});

it("prints its version, that of the package", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  for (const flag of ["--version", "-V"]) {
    expect(await runCli([flag])).toEqual({ code: 0, signal: null, stdout: `${version}\n`, stderr: "" });
  }
});

it("fits help to the width", async () => {
  const { stdout } = await runCli(["devices", "list", "--help"], { env: { COLUMNS: "80" } });
  const prose = linesOf(stdout).filter((line) => !line.includes("$ agentauth"));
  expect(Math.max(...prose.map((line) => line.length))).toBeLessThanOrEqual(80);
});
