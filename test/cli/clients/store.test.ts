import { expect, it } from "vitest";
import { runCli, temporaryFolder } from "../../helpers/cli.js";

const AT = "https://mcp.example/mcp";

it.each(["file", "memory", "keyring"])("opens the store %s", async (store) => {
  const env = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_STORE: store };
  const { code, stderr } = await runCli(["status", AT], { env });
  expect([code, stderr]).toEqual([4, expect.stringContaining(`store ${store} (AGENTAUTH_STORE)`)]);
});

it("refuses a store that is none", async () => {
  const { code, stderr } = await runCli(["status", AT], { env: { AGENTAUTH_STORE: "vault" } });
  expect([code, stderr]).toEqual([2, expect.stringContaining("vault")]);
});
