import { expect, it } from "vitest";
import { keychainPatience } from "../../../src/cli/clients/store.js";
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

it.each([
  [true, true, 60_000],
  [true, false, 10_000],
  [false, true, 10_000],
])("gives a keychain time for its user's password where a user is there: %s %s", (stdin, stderr, ms) => {
  expect(keychainPatience({ stdin: { isTTY: stdin }, stderr: { isTTY: stderr } })).toBe(ms);
});
