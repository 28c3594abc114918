import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";

describe("demo", () => {
  it("ends with 0, survives its faults, reads the whole list, and leaves nothing behind", async () => {
    const home = join(temporaryFolder(), "none");
    const { code, stdout, stderr } = await runCli(["demo"], { env: { AGENTAUTH_HOME: home } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const title of [
      "The domains of an account",
      "The pools of a domain",
      "Sorted by the service",
      "Filtered client-side",
      "What was requested",
    ]) {
      expect(stdout).toContain(`# ${title}\n`);
    }
    expect(stdout).toContain("8 of 8 clients, which share the login, were answered after 1 refresh.\n");
    expect(stdout.indexOf("# A token for")).toBeLessThan(stdout.indexOf("# The domains"));
    expect(stdout).toMatch(/^\$ agentauth devices list --pool pool_\w+ --sort last_seen:desc --limit 5$/m);
    const seen = Date.parse(/^dev_\w+ +agentauth demo .* (\d{4}-\S+Z) /m.exec(stdout)?.[1] ?? "");
    expect(Date.now() - seen).toBeGreaterThanOrEqual(0);
    const domains = /^ID +TITLE +STATUS +ACCOUNT\n((?:dom_.*\n)+)/m.exec(stdout)?.[1] ?? "";
    expect(domains.split("\n")).toHaveLength(4);
    expect(domains).toMatch(/^[\p{Script=Latin}\p{Script=Common}]+$/u);
    expect(stdout).toMatch(/^shown 5 of 1201; continue with: /m);
    expect(stdout).toMatch(/^Survived: HTTP 503, .*HTTP 429/m);
    expect(stdout).toContain("1201 of 1201 devices arrived in order, none twice, with four pages in flight.\n");
    expect(stdout).not.toMatch(/<CLIENT_SECRET>|sandbox_/);
    expect(existsSync(home)).toBe(false);
  });

  it("ignores the settings and the profile of the user", async () => {
    const env = {
      AGENTAUTH_PROFILE: "nope",
      AGENTAUTH_BASE_URL: "https://agentauth.example",
      AGENTAUTH_API_TOKEN: "tok_of_theirs",
    };
    expect((await runCli(["demo"], { env })).code).toBe(0);
  });

  it("ends at once on SIGINT", async () => {
    const { code } = await runCli(["demo"], { signalAfter: { characters: 100, signal: "SIGINT" } });
    expect(code).toBe(130);
  });
});
