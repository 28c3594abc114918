import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { firstSteps } from "../../../src/cli/config/home-access.js";
import { linesOf, runCli, temporaryFolder } from "../../helpers/cli.js";

const run = (args: readonly string[], home: string, env: Record<string, string> = {}) =>
  runCli(args, { env: { AGENTAUTH_HOME: home, ...env } });

describe("the first steps", () => {
  it("are printed beside the help where nothing is set up, and leave a line of 24 for the prompt", async () => {
    const home = join(temporaryFolder(), "home");
    for (const columns of ["80", "100"]) {
      const { code, stdout, stderr } = await run([], home, { COLUMNS: columns });
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Usage: agentauth/);
      expect(stdout).toContain("agentauth login <mcp_url>");
      for (const command of ["agentauth demo", "agentauth config set base_url"]) expect(stderr).toContain(command);
      // The first steps begin with an empty line.
      expect(linesOf(stdout).length + 1 + linesOf(stderr).length).toBeLessThanOrEqual(23);
    }
  });

  it("are not printed for --help, with a setting, or with a service in the environment", async () => {
    const home = join(temporaryFolder(), "home");
    expect((await run(["--help"], home)).stderr).toBe("");
    expect((await run([], home, { AGENTAUTH_BASE_URL: "https://agentauth.example" })).stderr).toBe("");
    await run(["config", "set", "pool", "p"], home);
    expect((await run([], home)).stderr).toBe("");
  });

  it("are two lines, unless there are settings or logins, or a folder of them that cannot be read", () => {
    const steps =
      "Nothing is set up here yet. Without an account: agentauth demo\nFor lists of a service: agentauth config set base_url <url>";
    const of = (arrange: (home: string) => void, env: Record<string, string> = {}) => {
      const home = temporaryFolder();
      arrange(home);
      return firstSteps({ AGENTAUTH_HOME: home, ...env });
    };
    expect(of(() => {})).toBe(steps);
    expect(of(() => {}, { AGENTAUTH_BASE_URL: "" })).toBe(steps);
    expect(of(() => {}, { AGENTAUTH_BASE_URL: "https://a.example" })).toBeUndefined();
    expect(of((home) => mkdirSync(join(home, "grants")))).toBe(steps);
    expect(of((home) => mkdirSync(join(home, "grants", "a"), { recursive: true }))).toBeUndefined();
    expect(of((home) => writeFileSync(join(home, "grants"), ""))).toBeUndefined();
    expect(of((home) => writeFileSync(join(home, "config.json"), "{}"))).toBeUndefined();
  });
});
