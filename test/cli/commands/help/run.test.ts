import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describeProgram, leafCommands } from "../../../../src/cli/commands/commands/run.js";
import { EXIT_CODES } from "../../../../src/cli/runtime/exit-codes.js";
import { linesOf, runCli } from "../../../helpers/cli.js";
import { declaredProgram } from "../../../helpers/program.js";

const tree = describeProgram(declaredProgram());
const { commands: TOP } = tree;
const GROUPS = TOP.filter(({ commands }) => commands.length > 0).map(({ name }) => name.split(" "));
const COMMANDS = leafCommands(TOP).map(({ name }) => name.split(" "));

describe("help is on stdout, exit 0", () => {
  it.each([...GROUPS, ...COMMANDS].map((words) => [words.join(" "), words] as const))("%s", async (name, words) => {
    const requested = await runCli([...words, "--help"]);
    expect({ code: requested.code, stderr: requested.stderr }).toEqual({ code: 0, stderr: "" });
    expect(requested.stdout).toMatch(new RegExp(`^Usage: agentauth ${name} `));
    expect(await runCli(["help", ...words])).toEqual(requested);
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
    for (const word of ["demo", "devices", "domains", "help exit-codes", "agentauth --help --all"]) {
      expect(plain?.stdout).toContain(word);
    }
    for (const other of others) expect(other).toEqual(plain);
  });

  it.each([40, 80, 100, 200])("fits %i columns, on every page", async (columns) => {
    const pages = [[], ...GROUPS, ...COMMANDS].flatMap((words) => [
      [...words, "--help"],
      [...words, "--help", "--all"],
    ]);
    const topics = ["flags", "exit-codes", "environment", "agents", "formats"].map((name) => ["help", name]);
    for (const args of [...pages, ...topics]) {
      const { stdout } = await runCli(args, { env: { COLUMNS: String(columns) } });
      const wide = linesOf(stdout).filter((line) => line.length > columns);
      // A quoted word of the shell, an address and a long placeholder cannot be broken.
      const unbreakable = /^ *(?:\$ )?(?:'.*'|".*"|[^ ]+)(?: \\)?$/;
      expect(columns < 80 ? wide.filter((line) => !unbreakable.test(line)) : wide, args.join(" ")).toEqual([]);
    }
  });

  it("has at most 40 lines and at least one example, and names the page that describes every flag", async () => {
    for (const words of [...GROUPS, ...COMMANDS]) {
      const { stdout } = await runCli([...words, "--help"], { env: { COLUMNS: "80" } });
      expect(linesOf(stdout).length, words.join(" ")).toBeLessThanOrEqual(40);
      expect(stdout, words.join(" ")).toContain("\n  $ ");
      expect(stdout).toContain("agentauth help flags");
    }
    const { stdout } = await runCli(["login", "--help"]);
    expect(stdout).toContain("More: agentauth login --help --all");
    expect(stdout).not.toContain("--allow-missing-pkce-metadata");
    const full = (await runCli(["login", "--help", "--all"])).stdout;
    for (const flag of ["--allow-missing-pkce-metadata", "--redirect-port", "--proxy"]) expect(full).toContain(flag);
    expect(full.indexOf("Security policy:")).toBeGreaterThan(full.indexOf("Login:"));
    expect((await runCli(["help", "login", "--all"])).stdout).toBe(full);
  });

  it("says of the filters that they are applied here", async () => {
    const { stdout } = await runCli(["devices", "list", "--help", "--all"]);
    expect(stdout.replace(/\s+/g, " ")).toMatch(
      /--status <status> Filter by status \(client-side, after reading the whole list\)/,
    );
  });
});

describe("topics", () => {
  // The other texts are in the pages that npm run generate writes.
  it.each(["agents", "formats", "--help"])("%s is as it was approved", async (topic) => {
    const { code, stdout, stderr } = await runCli(["help", topic], { env: { COLUMNS: "100" } });
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatchSnapshot();
  });

  it.each<[string, readonly { name: string; description: string }[]]>([
    ["flags", tree.flags],
    ["environment", tree.environment.map(({ name, description }) => ({ name, description: description }))],
  ])("%s has each name with its text, and is a command too", async (topic, entries) => {
    const { code, stdout, stderr } = await runCli(["help", topic]);
    expect([code, stderr]).toEqual([0, ""]);
    const words = stdout.replace(/\s+/g, " ");
    for (const { name, description } of entries)
      expect([words, words]).toEqual([expect.stringContaining(name), expect.stringContaining(description)]);
    expect(await runCli([topic])).toMatchObject({ code, stdout });
  });

  it.each([["devics"], ["devices", "lst"], ["x".repeat(100)]])("there is none for %j %j", async (...words) => {
    const { code, stdout, stderr } = await runCli(["help", ...words]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatchSnapshot();
  });

  it("exit-codes names every code", async () => {
    const { stdout } = await runCli(["help", "exit-codes"]);
    const codes = linesOf(stdout).flatMap((line) => /^ {2}(\d+) {2}/.exec(line)?.[1] ?? []);
    expect(codes.map(Number)).toEqual(Object.values(EXIT_CODES));
    expect((await runCli(["exit-codes"])).stdout).toBe(stdout);
  });
});

it("prints its version, that of the package", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  for (const flag of ["--version", "-V"]) {
    expect(await runCli([flag])).toEqual({ code: 0, signal: null, stdout: `${version}\n`, stderr: "" });
  }
});
