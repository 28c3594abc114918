import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { linesOf, runCli, temporaryFolder } from "../../helpers/cli.js";

const NOTE = "for an AI agent (AGENTAUTH_AGENT is set): JSON, no prompt, no browser; AGENTAUTH_AGENT=0 turns that off";
const AGENT = { AGENTAUTH_AGENT: "1" };

it("prints JSON for an agent, and says so", async () => {
  const { code, stdout, stderr } = await runCli(["config", "list"], { env: AGENT });
  expect([code, JSON.parse(stdout)[0].key, linesOf(stderr)]).toEqual([0, "profile", [NOTE]]);
});

it.each([[["-o", "plain"]], [["--json"]], [["--jq", ".[0].key"]]])("leaves the format to %j", async (flags) => {
  const args = ["config", "list", ...flags];
  expect(await runCli(args, { env: AGENT })).toEqual(await runCli(args));
});

it("leaves the format to the profile, and to the error of settings that are broken", async () => {
  const env = { ...AGENT, AGENTAUTH_HOME: temporaryFolder() };
  await runCli(["config", "set", "output", "plain"], { env });
  const chosen = await runCli(["config", "list"], { env });
  expect([chosen.stdout.split("\n")[0], chosen.stderr]).toEqual(["profile\tdefault\tsettings file", ""]);
  writeFileSync(join(env.AGENTAUTH_HOME, "config.json"), "{");
  const { code, stdout, stderr } = await runCli(["config", "list"], { env });
  expect([code, stdout]).toEqual([2, ""]);
  expect(JSON.parse(linesOf(stderr).at(-1) ?? "").error.message).toContain("is not valid JSON");
});

it("takes events for a watched list", async () => {
  const { code, stderr } = await runCli(["devices", "list", "--watch", "--limit", "3", "--pool", "p"], { env: AGENT });
  expect(code).toBe(2);
  expect(JSON.parse(linesOf(stderr).at(-1) ?? "").error.message).toContain("--limit does not work with --watch");
});

it("leaves the browser to the flag that names one", async () => {
  const args = ["token", "https://mcp.example/mcp", "--browser", "x '"];
  const { code, stderr } = await runCli(args, { env: { ...AGENT, HTTPS_PROXY: "http://127.0.0.1:9" } });
  expect(code).toBe(2);
  expect(JSON.parse(linesOf(stderr).at(-1) ?? "").error.message).toBe(
    `the browser command "x '" has an unterminated '`,
  );
});
