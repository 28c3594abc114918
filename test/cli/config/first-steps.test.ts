import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linesOf, runCli, temporaryFolder } from "../../helpers/cli.js";

const run = (args: readonly string[], home: string, env: Record<string, string> = {}) =>
  runCli(args, { env: { AGENTAUTH_HOME: home, ...env } });

describe("the first steps", () => {
  it("are printed in three lines beside the help where nothing is set up", async () => {
    const home = join(temporaryFolder(), "home");
    for (const columns of ["80", "57"]) {
      const { code, stdout, stderr } = await run([], home, { COLUMNS: columns });
      expect([code, linesOf(stderr).length]).toEqual([0, 3]);
      expect(stdout).toMatch(/^Usage: agentauth/);
      for (const command of ["agentauth demo", "agentauth login <mcp_url>", "agentauth config set base_url"]) {
        expect(stderr).toContain(command);
      }
    }
  });

  it("are not printed for --help, with a setting, or with a service in the environment", async () => {
    const home = join(temporaryFolder(), "home");
    expect((await run(["--help"], home)).stderr).toBe("");
    expect((await run([], home, { AGENTAUTH_BASE_URL: "https://agentauth.example" })).stderr).toBe("");
    await run(["config", "set", "pool", "p"], home);
    expect((await run([], home)).stderr).toBe("");
  });
});
