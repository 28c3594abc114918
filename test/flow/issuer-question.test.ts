import { describe, expect, it } from "vitest";
import { type RunOptions, runCli, temporaryFolder } from "../helpers/cli.js";
import { startScene } from "../helpers/issuer.js";

const QUESTION = "[y/N]";

async function begin() {
  const scene = await startScene();
  const env = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_CLIENT_SECRET: "prod-secret-9" };
  const args = ["login", scene.mcp.url, "--browser", "none", "--client-id", "prod"];
  return {
    ...scene,
    run: (flags: readonly string[], options: RunOptions) => runCli([...args, ...flags], { ...options, env }),
  };
}

describe("a login by a client with a secret", () => {
  it("sends nothing where the answer is no", async () => {
    const { issuer, run } = await begin();
    const { code, stderr } = await run([], { tty: true, stdin: "no\n" });
    expect([code, stderr]).toEqual([3, expect.stringContaining(QUESTION)]);
    expect(stderr).toContain(`--issuer ${issuer.issuer}`);
    expect(issuer.to("/pool/authorize")).toEqual([]);
    expect(issuer.to("/pool/token")).toEqual([]);
  });

  it("asks no question with --no-input, or without a terminal", async () => {
    const { run } = await begin();
    const quiet = await run(["--no-input"], { tty: true });
    expect(quiet.code).toBe(3);
    expect(quiet.stdout + quiet.stderr).not.toContain(QUESTION);
    const piped = await run([], {});
    expect([piped.code, piped.stderr]).toEqual([3, expect.stringContaining("--issuer")]);
  });
});
