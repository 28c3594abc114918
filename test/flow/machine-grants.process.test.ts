import { describe, expect, it } from "vitest";
import { linesOf, startCliSandbox } from "../helpers/cli.js";

describe("a sandbox of its own process", () => {
  it("prints the credentials of its machines, when it has machines", async () => {
    const sandbox = await startCliSandbox(["--machine-grants"]);
    try {
      const { stdout, code } = await sandbox.run(["sandbox", "machine"]);
      expect(code).toBe(0);
      const [said] = linesOf(stdout).map((line) => JSON.parse(line) as Record<string, string>);
      const env = { AGENTAUTH_CLIENT_SECRET: said?.["client_secret"] };
      const clientId = said?.["client_id"] ?? "";
      const flags = ["--grant", "client-credentials", "--client-id", clientId, "--issuer", said?.["issuer"] ?? ""];
      expect((await sandbox.run(["token", sandbox.ready.mcp_url, ...flags], { env })).code).toBe(0);
    } finally {
      await sandbox.stop();
    }
    const gone = await sandbox.run(["sandbox", "machine"]);
    expect([gone.code, gone.stdout]).toEqual([2, ""]);
    expect(gone.stderr).toContain("--machine-grants");
  });
});
